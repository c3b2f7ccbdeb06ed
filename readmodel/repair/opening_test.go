package repair_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"projector/internal/devstack/devtest"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/balance"
	"projector/readmodel/readmodeltest"
	"projector/readmodel/repair"
)

// openedBy names the ledger file in the audit trail. Each transaction of openings adds one row to
// the audit trail.
var openedBy = repair.OpenedBy{Source: "ledger.csv", SHA256: "abc", Actor: "me", Reason: "moved"}

// openAt returns an opening in EUR.
func openAt(account string, version, minor int64) repair.Opening {
	euro, _ := event.CurrencyByCode("EUR")
	return repair.Opening{AccountID: account, Opening: projection.Opening{Version: version, Balance: minor, Currency: euro}}
}

// open opens accounts in the given order. It returns the steps that it took.
func open(t *testing.T, pool *pgxpool.Pool, piece int, openings ...repair.Opening) (steps []readmodel.Step) {
	t.Helper()
	err := newRepair(t, pool, piece).Openings(openedBy).Apply(t.Context(), openings, func(s readmodel.Step) { steps = append(steps, s) })
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

// In TestOpeningsWithALiveConsumerAreExact, two processes open accounts while a consumer processes
// a random part of the history in a random order. At the end, each account has the result of its
// opening and of the events after it.
func TestOpeningsWithALiveConsumerAreExact(t *testing.T) {
	pool, format, round := openPool(t), jsonFormat(t), 0
	devtest.FewerChecks(t, "25")
	rapid.Check(t, func(rt *rapid.T) {
		round++
		var (
			ledger, later []repair.Opening
			all, behind   []string
			want          = map[string]string{}
		)
		for a := range rapid.IntRange(1, 4).Draw(rt, "accounts") {
			id, total := fmt.Sprintf("acc-%d-%d", round, a), int64(0)
			last := rapid.Int64Range(1, 25).Draw(rt, "events")
			at := rapid.Int64Range(1, last).Draw(rt, "opened at")
			again := rapid.Int64Range(at, last).Draw(rt, "opened again at")
			for v := range last {
				amount := rapid.Int64Range(1, 1000).Draw(rt, "amount")
				total += amount
				value := credit(id, int(v+1), fmt.Sprint(amount), "EUR")
				if all = append(all, value); v+1 > at {
					behind = append(behind, value)
				}
				if v+1 == at {
					ledger = append(ledger, openAt(id, at, total*100))
				}
				if v+1 == again {
					later = append(later, openAt(id, again, total*100))
				}
			}
			want[id] = fmt.Sprintf("EUR %d.00 %d open false", total, last)
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		var some []string
		for _, value := range all {
			for range 2 {
				if rng.IntN(3) == 0 {
					some = append(some, value)
				}
			}
		}
		rng.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
		live := newLiveConsumer(pool, format, readmodel.Partition{Group: "g", Topic: "events", Number: int32(round)}, append(some, behind...))
		var workers sync.WaitGroup
		workers.Go(func() {
			if err := live.run(t.Context()); err != nil {
				t.Errorf("consumer: %v", err)
			}
		})
		for _, openings := range [][]repair.Opening{ledger, later} {
			piece := 1 + rng.IntN(4)
			workers.Go(func() { open(t, pool, piece, openings...) })
		}
		workers.Wait()
		// The next claim applies the events that were parked during an opening.
		last := newLiveConsumer(pool, format, readmodel.Partition{Group: "g", Topic: "events", Number: int32(round)}, append(some, behind...))
		if err := last.run(t.Context()); err != nil {
			t.Errorf("consumer: %v", err)
		}
		for id, state := range want {
			fields := strings.Fields(current(t, pool, id))
			if got := strings.Join(append(fields[:4:4], fields[len(fields)-2]), " "); got != state {
				rt.Fatalf("account %s: %s, want %s", id, got, state)
			}
		}
		if n := count(t, pool, "SELECT count(*) FROM account_opening o JOIN account_balance b USING (account_id) WHERE b.version < o.version"); n != 0 || t.Failed() {
			rt.Fatalf("%d accounts are below their opening", n)
		}
	})
}

// In TestAnOpeningAndADiscardOfOneAccount, an account without a row is opened while one of its waiting
// events is discarded. The event is either applied or discarded, but not both.
func TestAnOpeningAndADiscardOfOneAccount(t *testing.T) {
	t.Parallel()
	pool, w := startWorker(t)
	w.MustFold(credit("a", 3, "1", "EUR"), credit("a", 4, "2", "EUR"))
	w.MustFlush()
	// The opening waits for this row after it has read the waiting events.
	blocking, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := blocking.Exec(t.Context(), "INSERT INTO account_balance (account_id, balance, version, status, updated_at) VALUES ('a', 0, 0, 'open', now())"); err != nil {
		t.Fatal(err)
	}
	var (
		both      sync.WaitGroup
		discarded []readmodel.Discarded
		failed    error
		ended     atomic.Bool
	)
	both.Go(func() { open(t, pool, 0, openAt("a", 2, 1000)) })
	readmodeltest.AwaitLock(t, pool, 1, nil)
	both.Go(func() {
		defer ended.Store(true)
		discarded, failed = newRepair(t, pool, 0).Discard(t.Context(), []readmodel.Discard{{
			Subject: readmodel.Subject{AccountID: "a", Version: 3},
			Action: readmodel.Action{
				Kind: readmodel.ActionDiscard, Actor: "me", Reason: "x", Result: readmodel.ResultDiscarded,
				AccountID: "a", Class: event.VersionGap, Topic: partition.Topic, Partition: partition.Number,
			},
		}})
	})
	readmodeltest.AwaitLock(t, pool, 2, ended.Load) // the discard has ended, or waits too
	if err := blocking.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	both.Wait()
	if failed != nil {
		t.Fatal(failed)
	}
	want := "EUR 10.00 2 open - true 3"
	if discarded[0].Passed {
		want = "EUR 13.00 4 open a-4 false -"
	}
	expect(t, current(t, pool, "a"), want)
	if n := count(t, pool, "SELECT count(*) FROM dlq_action WHERE action = 'discard'"); (n == 0) != discarded[0].Passed {
		t.Errorf("%d discards are recorded, passed %v", n, discarded[0].Passed)
	}
}

// TestParkedEventsAreAppliedWithTheOpening shows that the parked events of an account are applied
// in the transaction of its opening. If accounts have many parked events, a transaction opens only
// a few accounts.
func TestParkedEventsAreAppliedWithTheOpening(t *testing.T) {
	t.Parallel()
	pool := openPool(t)
	w := newWorkerWith(t, pool, partition, func(cfg *balance.Config) { cfg.ParkLimit = 3000 })
	w.MustClaim("me", projection.NoOffset)
	var openings []repair.Opening
	for a := range 12 {
		id, parked := fmt.Sprintf("acc-%02d", a), 400
		if a == 7 {
			parked = 2500
		}
		for v := range parked {
			w.MustFold(credit(id, v+3, "1", "EUR"))
		}
		openings = append(openings, openAt(id, 5, 1000)) // the opening includes versions 3, 4 and 5
	}
	w.MustFlush()
	steps := open(t, pool, 0, openings...)
	opened, healed := 0, 0
	for _, s := range steps {
		opened, healed = opened+s.Records, healed+s.Healed
		if s.Healed > 2400 {
			t.Errorf("%d events were healed in one transaction", s.Healed)
		}
	}
	if opened != 12 || healed != 11*397+2497 || len(steps) < 4 {
		t.Errorf("%d accounts were opened and %d events healed in %d steps", opened, healed, len(steps))
	}
	if n := count(t, pool, "SELECT count(*) FROM account_balance_current WHERE NOT stale AND balance = 10 + version - 5"); n != 12 {
		t.Errorf("%d accounts are whole", n)
	}
	if n := count(t, pool, "SELECT (SELECT count(*) FROM parked_event) + (SELECT count(*) FROM park_overflow)"); n != 0 {
		t.Errorf("%d events are still parked", n)
	}
}

// TestAnOpeningThatPostgresRefusesIsFound shows that only the refused account is not opened. Each
// transaction writes its row in the audit trail, and no account is opened without such a row.
func TestAnOpeningThatPostgresRefusesIsFound(t *testing.T) {
	pool := openPool(t)
	if _, err := pool.Exec(t.Context(), "ALTER TABLE account_balance ADD CHECK (balance < 100)"); err != nil {
		t.Fatal(err)
	}
	var openings []repair.Opening
	for a := range 20 {
		openings = append(openings, openAt(fmt.Sprintf("acc-%02d", a), 3, 500))
	}
	openings[7].Balance = 100_00
	openings[9].AccountID, openings[9].Currency = "acc-08", event.Currency{} // a second opening of acc-08, which already exists and stays unchanged
	open(t, pool, 0, openings...)
	for i, x := range openings {
		want := projection.Applied
		switch i {
		case 7:
			want = projection.DeadLettered
		case 9:
			want = projection.Duplicate
		}
		if !x.Decided || x.Decision.Outcome != want {
			t.Errorf("%s: %+v", x.AccountID, x.Decision)
		}
	}
	if openings[7].Decision.Class != event.RejectedByDatabase {
		t.Errorf("%+v", openings[7].Decision)
	}
	got := lines(t, pool, `SELECT count(*) || ' ' || sum(split_part(substr(reason, 8), ' ', 1)::int) || ' ' || min(original_sha256) || ' ' || count(account_id)
		FROM dlq_action WHERE action = 'open' AND result = 'opened'`)
	rows := 0
	if n, err := fmt.Sscanf(got, "%d 18 abc 0", &rows); n != 1 || err != nil || rows < 2 {
		t.Errorf("the trail: %s", got)
	}
	if n := count(t, pool, "SELECT count(*) FROM account_opening WHERE actor = 'me' AND reason = 'moved' AND source = 'ledger.csv'"); n != 18 {
		t.Errorf("%d openings", n)
	}
}

// TestAConsumerNeverWritesOverAnOpening shows that changes and decisions that were based on the
// account before its opening are not written.
func TestAConsumerNeverWritesOverAnOpening(t *testing.T) {
	pool, w := startWorker(t)
	w.MustFold(credit("a", 1, "1", "EUR"))
	w.MustFlush()
	for name, c := range map[string]struct {
		opening repair.Opening
		pending []string // decided before the opening
		then    string
	}{
		"a change":      {openAt("a", 5, 1000), []string{credit("a", 2, "1", "EUR"), credit("a", 3, "1", "EUR")}, "EUR 10.00 5 open - false -"},
		"a new account": {openAt("b", 5, 1000), []string{credit("b", 1, "1", "EUR")}, "EUR 10.00 5 open - false -"},
		"a gap":         {openAt("c", 5, 1000), []string{credit("c", 6, "1", "EUR")}, "EUR 11.00 6 open c-6 false -"},
		"a gap that is": {openAt("d", 5, 1000), []string{credit("d", 7, "1", "EUR")}, "EUR 10.00 5 open - true 6"},
	} {
		t.Run(name, func(t *testing.T) {
			next := w.Next
			w.MustFold(c.pending...)
			open(t, pool, 0, c.opening)
			if _, err := w.VerifyAndFlush(); err == nil {
				t.Fatal("a flush of what was decided before the opening was written")
			}
			w.MustClaim("me", next)
			w.MustFold(c.pending...)
			w.MustFlush()
			expect(t, current(t, pool, c.opening.AccountID), c.then)
		})
	}
}

// In TestAnAccountThatGetsARowWhileItIsOpened, many new accounts are written by COPY. Another
// session adds a row for one of them first. This row is not overwritten, and the opening is decided
// again.
func TestAnAccountThatGetsARowWhileItIsOpened(t *testing.T) {
	t.Parallel()
	for version, want := range map[int]string{1: "EUR 10.00 3 open - false -", 4: "EUR 7.00 4 open - false -"} {
		pool := openPool(t)
		var openings []repair.Opening
		for a := range readmodel.CopyLeast + 10 {
			openings = append(openings, openAt(fmt.Sprintf("acc-%03d", a), 3, 1000))
		}
		other, err := pool.Begin(t.Context())
		if err == nil {
			_, err = other.Exec(t.Context(), "INSERT INTO account_balance (account_id, version, balance, currency) VALUES ('acc-100', $1, 7, 'EUR')", version)
		}
		if err != nil {
			t.Fatal(err)
		}
		var opening sync.WaitGroup
		opening.Go(func() { open(t, pool, 0, openings...) })
		for count(t, pool, "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'") == 0 {
			if t.Context().Err() != nil {
				t.Fatal("nobody waits for the other's row")
			}
		}
		if err := other.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		opening.Wait()
		expect(t, strings.Replace(current(t, pool, "acc-100"), " 7 ", " 7.00 ", 1), want)
		opened := len(openings)
		if version > 3 {
			opened--
		}
		if n := count(t, pool, "SELECT count(*) FROM account_opening o JOIN account_balance b USING (account_id, version, balance) WHERE version = 3"); n != opened {
			t.Errorf("%d of %d accounts start from their opening", n, opened)
		}
	}
}

// TestAnAccountThatIsKeptIsNotLocked opens accounts from a ledger for the second time. Accounts
// that stay unchanged must not be locked. The command does not wait for the writers of these
// accounts and does not delay them.
func TestAnAccountThatIsKeptIsNotLocked(t *testing.T) {
	t.Parallel()
	pool := openPool(t)
	open(t, pool, 0, openAt("a", 3, 1000), openAt("b", 3, 1000))
	writer, err := pool.Begin(t.Context())
	if err == nil {
		_, err = writer.Exec(t.Context(), "UPDATE account_balance SET version = 4 WHERE account_id = 'a'")
	}
	if err != nil {
		t.Fatal(err)
	}
	again := []repair.Opening{openAt("a", 3, 1000), openAt("b", 2, 500), openAt("c", 3, 1000)}
	open(t, pool, 0, again...)
	for i, want := range []projection.Outcome{projection.Duplicate, projection.Duplicate, projection.Applied} {
		if x := again[i]; !x.Decided || x.Decision.Outcome != want {
			t.Errorf("%s: %+v", x.AccountID, x.Decision)
		}
	}
	if err := writer.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkOpenings opens as many new accounts in a transaction as the command does.
func BenchmarkOpenings(b *testing.B) {
	pool := openPool(b)
	openings := make([]repair.Opening, b.N)
	for i := range openings {
		openings[i] = openAt(fmt.Sprintf("acc-%010d", i), 17, int64(i))
	}
	repairer := repair.New(readmodel.RepairConfig{Pool: pool, Formats: event.Always(jsonFormat(b)), FirstVersion: 1})
	b.ReportAllocs()
	b.ResetTimer()
	if err := repairer.Openings(openedBy).Apply(b.Context(), openings, nil); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "accounts/s")
}
