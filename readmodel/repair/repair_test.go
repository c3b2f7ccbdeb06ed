package repair_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"projector/errclass"
	"projector/faulttest/pgproxy"
	"projector/internal/devstack/devtest"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/accountdb"
	"projector/readmodel/balance"
	"projector/readmodel/readmodeltest"
)

func effects(records []*readmodel.RepairRecord) string {
	var names []string
	for _, r := range records {
		names = append(names, string(readmodel.EffectOf(r.Decision)))
	}
	return strings.Join(names, " ")
}

func TestReplayDoesWhatItPlans(t *testing.T) {
	pool, w := startWorker(t)
	w.MustFold(credit("a", 1, "1", "EUR"), credit("a", 3, "4", "EUR"), credit("a", 6, "32", "EUR"), credit("b", 1, "1", "EUR"))
	w.MustFlush()
	values := []string{
		credit("a", 5, "16", "EUR"), credit("a", 2, "2", "EUR"), credit("a", 4, "8", "EUR"), credit("a", 1, "1", "EUR"),
		credit("a", 8, "128", "EUR"), credit("b", 2, "1", "USD"), credit("b", 3, "1", "EUR"),
	}
	const want = "applied applied applied duplicate waiting poison waiting"
	repairer, records := newRepair(t, pool, 0), replayOf(w.Format, values...)
	if err := repairer.Plan(t.Context(), records); err != nil {
		t.Fatal(err)
	}
	expect(t, effects(records), want)
	expect(t, current(t, pool, "a"), "EUR 1.00 1 open a-1 true 2")
	if n := count(t, pool, "SELECT count(*) FROM dlq_action"); n != 0 {
		t.Errorf("a plan left %d actions", n)
	}

	if err := repairer.Apply(t.Context(), records, nil); err != nil {
		t.Fatal(err)
	}
	expect(t, effects(records), want)
	expect(t, current(t, pool, "a"), "EUR 63.00 6 open a-6 false -")
	expect(t, current(t, pool, "b"), "EUR 1.00 1 open b-1 false -")
	if n := count(t, pool, "SELECT count(*) FROM parked_event"); n != 0 {
		t.Errorf("%d events are still parked", n)
	}

	again := replayOf(w.Format, values...)
	if err := repairer.Apply(t.Context(), again, nil); err != nil {
		t.Fatal(err)
	}
	expect(t, effects(again), "duplicate duplicate duplicate duplicate waiting poison waiting")
	expect(t, current(t, pool, "a"), "EUR 63.00 6 open a-6 false -")
	if n := count(t, pool, "SELECT count(*) FROM dlq_action WHERE action = 'replay' AND actor = 'me' AND dlq_topic = 'events.dlq'"); n != 14 {
		t.Errorf("%d actions, want 14", n)
	}
}

func TestAParkedEventThatCannotBeAppliedIsLeftToTheConsumer(t *testing.T) {
	pool, w := startWorker(t)
	w.MustFold(credit("a", 2, "2", "EUR"), credit("a", 3, "4", "USD"), credit("a", 4, "8", "EUR"))
	w.MustFlush()
	if err := newRepair(t, pool, 0).Apply(t.Context(), replayOf(w.Format, credit("a", 1, "1", "EUR")), nil); err != nil {
		t.Fatal(err)
	}
	expect(t, current(t, pool, "a"), "EUR 3.00 2 open a-2 true 3")
	overdue, err := accountdb.LoadOverdue(t.Context(), pool, readmodel.BalanceName, partition.Topic, []int32{partition.Number}, 0)
	if err != nil || len(overdue) != 1 {
		t.Errorf("partitions %v, error %v: it is not reported to the consumer", overdue, err)
	}
	w.MustClaim("me", w.Next)
	if _, err := w.Heal(1000); err != nil {
		t.Fatal(err)
	}
	changes := w.MustFlush()
	if len(changes.DeadLetters) != 1 || changes.DeadLetters[0].Class != event.CurrencyMismatch {
		t.Errorf("letters %+v, want the mismatch", changes.DeadLetters)
	}
}

// TestAParkedEventIsOverdueAfterTheClockWasSetBack parks an event and writes its account at times
// that are in the future now. Nobody writes the account, so the event is overdue.
func TestAParkedEventIsOverdueAfterTheClockWasSetBack(t *testing.T) {
	pool, w := startWorker(t)
	w.MustFold(credit("a", 2, "2", "EUR"), credit("a", 3, "4", "USD"))
	w.MustFlush()
	if err := newRepair(t, pool, 0).Apply(t.Context(), replayOf(w.Format, credit("a", 1, "1", "EUR")), nil); err != nil {
		t.Fatal(err)
	}
	for set, want := range map[string]int{"now()": 0, "now() + interval '3 days'": 1} {
		for _, query := range []string{"UPDATE account_balance SET updated_at = " + set, "UPDATE parked_event SET parked_at = " + set} {
			if _, err := pool.Exec(t.Context(), query); err != nil {
				t.Fatal(err)
			}
		}
		overdue, err := accountdb.LoadOverdue(t.Context(), pool, readmodel.BalanceName, partition.Topic, []int32{partition.Number}, time.Minute)
		if len(overdue) != want || err != nil {
			t.Errorf("%s: partitions %v, want %d, error %v", set, overdue, want, err)
		}
	}
}

func TestAConsumerNeverWritesOverARepair(t *testing.T) {
	pool, w := startWorker(t)
	w.MustFold(credit("a", 1, "1", "EUR"))
	w.MustFlush()
	w.MustFold(credit("a", 2, "2", "EUR"), credit("a", 3, "4", "EUR")) // decided at version 1, not yet written
	corrected := replayOf(w.Format, credit("a", 2, "100", "EUR"))
	if err := newRepair(t, pool, 0).Apply(t.Context(), corrected, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := w.VerifyAndFlush(); !errors.Is(err, projection.ErrStale) {
		t.Fatalf("error %v, want ErrStale", err)
	}
	w.MustClaim("me", w.Next-2)
	w.MustFold(credit("a", 2, "2", "EUR"), credit("a", 3, "4", "EUR"))
	w.MustFlush()
	expect(t, current(t, pool, "a"), "EUR 105.00 3 open a-3 false -")
}

func TestWhatPostgresRefusesIsFoundAndTheRestGoesOn(t *testing.T) {
	pool := openPool(t)
	if _, err := pool.Exec(t.Context(), "ALTER TABLE account_balance ADD CHECK (balance < 100)"); err != nil {
		t.Fatal(err)
	}
	var values []string
	for i := range 20 {
		values = append(values, credit(fmt.Sprintf("acc-%02d", i), 1, "1", "EUR"))
	}
	values = append(values, credit("acc-07", 2, "99", "EUR"), credit("acc-07", 3, "1", "EUR"))
	records := replayOf(jsonFormat(t), values...)
	if err := newRepair(t, pool, 0).Apply(t.Context(), records, nil); err != nil {
		t.Fatal(err)
	}
	if v := records[20].Decision; v.Class != event.RejectedByDatabase || !strings.HasSuffix(v.Message, ": change the constraint, or drop it") {
		t.Errorf("decision %+v, want a refusal with its remedy", v)
	}
	if e := readmodel.EffectOf(records[21].Decision); e != readmodel.EffectWaiting {
		t.Errorf("behind the refused one: %s", e)
	}
	if n := count(t, pool, "SELECT count(*) FROM account_balance WHERE version = 1 AND balance = 1"); n != 20 {
		t.Errorf("%d accounts were repaired, want all 20", n)
	}
}

// liveConsumer consumes the records of one partition like a worker. When it is fenced or its
// changes are stale, it claims the partition again and decides again.
type liveConsumer struct {
	balance *balance.Balance
	records []projection.DecodedRecord
}

func newLiveConsumer(pool *pgxpool.Pool, format event.Format, p readmodel.Partition, values []string) *liveConsumer {
	c := &liveConsumer{balance: balance.New(balance.Config{RunConfig: readmodel.RunConfig{
		Pool: pool, Formats: event.Always(format), FirstVersion: 1, ParkLimit: 8, CacheBytes: func() int { return 1 << 20 },
	}}, p)}
	for i, value := range values {
		j := projection.DecodedRecord{Record: projection.Record{
			Topic: p.Topic, Partition: p.Number, Offset: int64(i), Message: event.Message{Value: []byte(value)},
		}}
		format.Decode(j.Record.Message, &j.Decoded)
		c.records = append(c.records, j)
	}
	return c
}

func (c *liveConsumer) run(ctx context.Context) error {
	next := int64(0)
	for {
		pos, err := c.balance.Claim(ctx, projection.Claim{Owner: "live", TopicID: "id", Committed: next})
		if err != nil {
			return err
		}
		next = pos.Next
		err = c.session(ctx, &next)
		if !errors.Is(err, projection.ErrFenced) && !errors.Is(err, projection.ErrStale) && errclass.Postgres(err) != errclass.Retry {
			return err
		}
	}
}

func (c *liveConsumer) session(ctx context.Context, next *int64) error {
	const pieceSize = 3
	for more := true; more || *next < int64(len(c.records)); {
		if _, err := c.balance.Fold(ctx, nil, pieceSize); err != nil {
			return err
		}
		more = c.balance.Pending().Healing
		n, err := c.balance.Fold(ctx, c.records[*next:min(*next+pieceSize, int64(len(c.records)))], pieceSize)
		if err != nil {
			return err
		}
		if err := c.balance.Verify(ctx); err != nil {
			return err
		}
		if _, err := c.balance.Flush(ctx, readmodeltest.At(*next+int64(n))); err != nil {
			return err
		}
		*next += int64(n)
		more = more || n > 0
	}
	return nil
}

func TestReplaysWithALiveConsumerAreExact(t *testing.T) {
	t.Parallel()
	pool, format, round := openPool(t), jsonFormat(t), 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		type history struct {
			id    string
			total int
			n     int
		}
		var (
			accounts []history
			all      []string
		)
		for a := range rapid.IntRange(1, 3).Draw(rt, "accounts") {
			h := history{id: fmt.Sprintf("acc-%d-%d", round, a), n: rapid.IntRange(1, 25).Draw(rt, "events")}
			for v := 1; v <= h.n; v++ {
				amount := rapid.IntRange(1, 1000).Draw(rt, "amount")
				h.total += amount
				all = append(all, credit(h.id, v, fmt.Sprint(amount), "EUR"))
			}
			accounts = append(accounts, h)
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		shuffled := func(share int) []string { // a random part of the values, some of them twice
			var some []string
			for _, v := range all {
				for range 2 {
					if rng.IntN(150) < share {
						some = append(some, v)
					}
				}
			}
			rng.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
			return some
		}
		p := readmodel.Partition{Group: "g", Topic: "events", Number: int32(round)}
		live := newLiveConsumer(pool, format, p, shuffled(80))
		var workers sync.WaitGroup
		workers.Go(func() {
			if err := live.run(t.Context()); err != nil {
				t.Errorf("consumer: %v", err)
			}
		})
		replay := func(values []string, piece, stopAfter int) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			records := replayOf(format, values...)
			for _, r := range records {
				r.Record.Partition = p.Number
			}
			err := newRepair(t, pool, piece).Apply(ctx, records, func(readmodel.Step) {
				if stopAfter--; stopAfter == 0 {
					cancel() // as if the process was killed between two transactions
				}
			})
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("replay: %v", err)
			}
		}
		for range 3 {
			values, piece, stopAfter := shuffled(70), 1+rng.IntN(9), rng.IntN(4)
			workers.Go(func() { replay(values, piece, stopAfter) })
		}
		workers.Wait()
		again := slices.Clone(all)
		rng.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
		replay(again, 7, -1) // at the end, all events are replayed once more

		for _, h := range accounts {
			expect(t, current(t, pool, h.id), fmt.Sprintf("EUR %d.00 %d open %s-%d false -", h.total, h.n, h.id, h.n))
		}
		if t.Failed() {
			rt.FailNow()
		}
	})
}

// TestAReplayWhoseCommitIsNotAnswered loses the reply to the first COMMIT. The records are applied
// once, and the audit trail has them once.
func TestAReplayWhoseCommitIsNotAnswered(t *testing.T) {
	database := devtest.Database(t)
	pool := openPoolAt(t, database)
	proxy, through, err := pgproxy.ListenBefore(database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	proxy.LoseReplies(func() bool { return proxy.Lost() == 0 })
	records := replayOf(jsonFormat(t), credit("a", 1, "1", "EUR"), credit("a", 2, "2", "EUR"))
	if err := newRepair(t, openPoolAt(t, through), 0).Apply(t.Context(), records, nil); err != nil {
		t.Fatal(err)
	}
	expect(t, effects(records), "applied applied")
	expect(t, current(t, pool, "a"), "EUR 3.00 2 open a-2 false -")
	if n := count(t, pool, "SELECT count(*) FROM dlq_action WHERE result = 'applied'"); n != 2 || proxy.Lost() != 1 {
		t.Errorf("%d actions, want 2; %d replies lost", n, proxy.Lost())
	}
}

// TestARepairLocksAccountsInTheOrderOfBytes shows that a repair locks accounts in the same order as
// consumers, for every collation of the database. Otherwise a repair and a consumer could deadlock.
func TestARepairLocksAccountsInTheOrderOfBytes(t *testing.T) {
	pool := openPool(t)
	if _, err := pool.Exec(t.Context(), `ALTER TABLE account_balance DROP CONSTRAINT account_balance_pkey;
		DROP VIEW account_balance_current, account_hold, account_statement_balance;
		ALTER TABLE account_balance ALTER account_id TYPE text COLLATE "en-x-icu", ADD PRIMARY KEY (account_id)`); err != nil {
		t.Fatal(err)
	}
	w := newWorker(t, pool, partition)
	w.MustClaim("me", projection.NoOffset)
	w.MustFold(credit("B", 1, "1", "EUR"), credit("a", 1, "1", "EUR"))
	w.MustFlush()
	holder, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := holder.Exec(t.Context(), "SELECT FROM account_balance WHERE account_id = 'B' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	repaired := make(chan error, 1)
	go func() {
		records := replayOf(w.Format, credit("a", 2, "1", "EUR"), credit("B", 2, "1", "EUR"))
		repaired <- newRepair(t, pool, 0).Apply(t.Context(), records, nil)
	}()
	for count(t, pool, "SELECT count(*) FROM pg_locks WHERE NOT granted") == 0 {
		if t.Context().Err() != nil {
			t.Fatal("the repair waits for nothing")
		}
	}
	if _, err := holder.Exec(t.Context(), "SELECT FROM account_balance WHERE account_id = 'a' FOR UPDATE NOWAIT"); err != nil {
		t.Errorf("account a is locked before B: %v", err)
	}
	if err := holder.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-repaired; err != nil {
		t.Error(err)
	}
}
