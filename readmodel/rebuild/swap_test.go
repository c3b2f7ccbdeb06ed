package rebuild_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/errclass"
	"projector/faulttest/pgproxy"
	"projector/internal/devstack/devtest"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel/balance"
	"projector/readmodel/readmodeltest"
	"projector/readmodel/rebuild"
)

// rebuilt is a topic of one partition, with its consumer and with a Shadow that also reads the
// topic.
type rebuilt struct {
	t      *testing.T
	pool   *pgxpool.Pool
	topic  []string
	live   *reader
	shadow *rebuild.Shadow
	reads  *reader
	opts   rebuild.SwapOptions
	moves  []int64 // how far the consumer reads while the rebuilt tables catch up
	rounds int
}

// newRebuilt lets the consumer read up to an offset, damages the read model by SQL, and compares.
func newRebuilt(t *testing.T, at, parkLimit int64, damage string, topic ...string) *rebuilt {
	t.Helper()
	return newRebuiltOn(t, readmodeltest.OpenPool(t), at, parkLimit, damage, topic...)
}

func newRebuiltOn(t *testing.T, pool *pgxpool.Pool, at, parkLimit int64, damage string, topic ...string) *rebuilt {
	t.Helper()
	r := &rebuilt{
		t: t, pool: pool, topic: topic, live: newReader(t, pool, 0, topic, "g"),
		opts: rebuild.SwapOptions{Topic: "events", Actor: "me"},
	}
	r.live.worker = readmodeltest.NewWorkerWith(t, pool, partition, func(cfg *balance.Config) { cfg.ParkLimit = parkLimit })
	r.live.MustClaim("me", projection.NoOffset)
	r.live.readTo(at)
	r.exec(damage)
	r.live.MustClaim("me", projection.NoOffset)
	r.shadow = openShadowOf(t, pool, parkLimit)
	r.reads = newReader(t, r.shadow.Pool, 0, topic, "rebuild")
	report, err := r.shadow.Compare(t.Context(), rebuild.CompareOptions{Topic: "events", List: 10},
		func(_ context.Context, positions []rebuild.TopicPosition) error {
			r.reads.readTo(positions[0].Next)
			return nil
		})
	if err != nil || report.Different() == 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	return r
}

func (r *rebuilt) exec(statement string) {
	r.t.Helper()
	if _, err := r.pool.Exec(r.t.Context(), statement); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rebuilt) swap() rebuild.Swapped {
	r.t.Helper()
	done, err := r.trySwap()
	if err != nil {
		r.t.Fatal(err)
	}
	return done
}

func (r *rebuilt) trySwap() (rebuild.Swapped, error) {
	return r.shadow.Swap(r.t.Context(), r.opts, func(_ context.Context, positions []rebuild.TopicPosition) error {
		r.reads.readTo(positions[0].Next)
		if r.rounds++; r.rounds <= len(r.moves) {
			r.live.readTo(r.moves[r.rounds-1])
		}
		return nil
	})
}

// The swap writes each account that differs as it is at the positions that its transaction has
// locked.
func TestASwapIsWhereTheConsumersAre(t *testing.T) {
	r := newRebuilt(t, 4, 100, `UPDATE account_balance SET balance = 99 WHERE account_id <> 'gone'; DELETE FROM account_balance WHERE account_id = 'gone'`,
		credit("quiet", 1, "1", "EUR"), credit("hot", 1, "1", "EUR"), credit("gone", 1, "1", "EUR"), credit("gone", 2, "1", "EUR"),
		credit("hot", 2, "1", "EUR"), credit("gone", 3, "1", "EUR"), credit("late", 1, "1", "EUR"))
	r.moves = []int64{6}
	if done := r.swap(); done != (rebuild.Swapped{Replaced: 3}) {
		t.Errorf("%+v", done)
	}
	expect(t, lines(t, r.pool, `SELECT concat_ws(' ', account_id, balance, version) FROM account_balance ORDER BY 1`),
		"gone 3.00 3\nhot 2.00 2\nquiet 1.00 1")
	r.live.readTo(7)
	expect(t, fmt.Sprint(state(t, r.pool)), "map[gone:EUR 3.00 3 open gone-3 f hot:EUR 2.00 2 open hot-2 f late:EUR 1.00 1 open late-1 f quiet:EUR 1.00 1 open quiet-1 f]")
	expect(t, lines(t, r.pool, `SELECT count(*) FROM dlq_action WHERE action = 'rebuild'`), "3")
}

// Rows that were written after the comparison are compared again, no matter who wrote them.
func TestASwapComparesWhatWasWrittenSinceTheComparison(t *testing.T) {
	r := newRebuilt(t, 4, 100, `UPDATE account_balance SET balance = 99 WHERE account_id = 'a'`,
		credit("a", 1, "1", "EUR"), credit("b", 1, "1", "EUR"), credit("c", 1, "1", "EUR"), credit("c", 3, "1", "EUR"))
	r.exec(`UPDATE account_balance SET balance = 77 WHERE account_id = 'b'`)
	r.exec(`UPDATE parked_event SET version = 4`)
	if done := r.swap(); done != (rebuild.Swapped{Replaced: 3}) {
		t.Errorf("%+v", done)
	}
	expect(t, lines(t, r.pool, `SELECT concat_ws(' ', account_id, balance, version) FROM account_balance ORDER BY 1`), "a 1.00 1\nb 1.00 1\nc 1.00 1")
	expect(t, lines(t, r.pool, `SELECT version FROM parked_event`), "3")
}

// A second event for a parked version is dead-lettered and not parked. The second event may be
// another event, or the same event in a form that can be applied.
func TestASwapSeesAConflictingEventOfAParkedOne(t *testing.T) {
	other := strings.Replace(credit("a", 2, "5", "EUR"), `"eventId":"`, `"eventId":"other-`, 1)
	for name, corrected := range map[string]string{"other-a-2": other, "a-2": credit("a", 2, "5", "EUR")} {
		t.Run(name, func(t *testing.T) {
			r := newRebuilt(t, 2, 100, `DELETE FROM account_balance`, credit("a", 1, "1", "EUR"), credit("a", 2, "1", "USD"), corrected)
			r.moves = []int64{3}
			if done := r.swap(); done != (rebuild.Swapped{Replaced: 1}) {
				t.Errorf("%+v", done)
			}
			r.live.readTo(3)
			expect(t, fmt.Sprint(state(t, r.pool)), "map[a:EUR 6.00 2 open "+name+" f]")
		})
	}
}

// Records after the consumers' positions are dead-lettered later by the consumers, not by the swap.
func TestASwapLeavesDeadLettersToTheConsumers(t *testing.T) {
	r := newRebuilt(t, 2, 100, `UPDATE account_balance SET balance = 99`,
		credit("a", 1, "1", "EUR"), credit("a", 3, "4", "USD"), // the second event comes early and has another currency
		credit("a", 5, "16", "EUR"),                                                            // the consumer has read up to here when the swap locks the positions
		credit("a", 2, "2", "EUR"), credit("a", 7, "64", "EUR"), credit("a", 4, "none", "EUR"), // the consumer has not read these yet
	)
	r.moves = []int64{3}
	if done := r.swap(); done != (rebuild.Swapped{Replaced: 1}) {
		t.Errorf("%+v", done)
	}
	expect(t, current(t, r.pool, "a"), "EUR 1.00 1 open a-1 true 2")
	expect(t, lines(t, r.pool, `SELECT concat_ws(' ', version, class) FROM parked_event ORDER BY 1`), "3 version_gap\n5 version_gap")
	r.live.letters = nil
	r.live.MustClaim("me", projection.NoOffset)
	if r.live.Next != 3 {
		t.Fatalf("goes on at %d", r.live.Next)
	}
	r.live.readTo(6)
	slices.Sort(r.live.letters)
	expect(t, strings.Join(r.live.letters, ", "), "a-3 currency_mismatch, a-4 invalid_amount, a-7 version_gap")
	expect(t, current(t, r.pool, "a"), "EUR 3.00 2 open a-2 true 3")
	expect(t, lines(t, r.pool, `SELECT concat_ws(' ', version, class) FROM parked_event ORDER BY 1`),
		"3 currency_mismatch\n4 invalid_amount\n5 version_gap\n7 version_gap")
}

// Of the waiting events beyond the park limit, the swap stores only the number, the lowest and the
// highest version. The events themselves are not in the database.
func TestASwapCountsWhatWaitsBeyondTheParkLimit(t *testing.T) {
	r := newRebuilt(t, 3, 1, `UPDATE account_balance SET balance = 99`,
		credit("a", 1, "1", "EUR"), credit("a", 3, "1", "EUR"), credit("a", 4, "1", "EUR"), credit("a", 6, "1", "EUR"), credit("a", 5, "1", "EUR"))
	r.moves = []int64{5}
	if done := r.swap(); done != (rebuild.Swapped{Replaced: 1}) {
		t.Errorf("%+v", done)
	}
	expect(t, current(t, r.pool, "a"), "EUR 1.00 1 open a-1 true 2")
	expect(t, lines(t, r.pool, `SELECT concat_ws(' ', lowest_version, highest_version, events) FROM park_overflow`), "4 6 3")
	expect(t, lines(t, r.pool, `SELECT version FROM parked_event`), "3")
}

// A swap does not undo repairs that operators make during the rebuild. In some cases only the audit
// trail shows such a repair.
func TestASwapLeavesAloneWhatIsRepairedMeanwhile(t *testing.T) {
	r := newRebuilt(t, 2, 100, `UPDATE account_balance SET balance = 99`,
		credit("a", 1, "1", "EUR"), credit("a", 2, "none", "EUR"), credit("a", 2, "3", "EUR"))
	corrected := readmodeltest.ReplayOf(r.live.Format, credit("a", 2, "2", "EUR"))
	corrected[0].Action.Class = event.MalformedPayload
	if err := newRepair(t, r.pool, 0).Apply(t.Context(), corrected, nil); err != nil {
		t.Fatal(err)
	}
	r.live.MustClaim("me", projection.NoOffset)
	r.live.readTo(3) // a duplicate of the corrected event, with another amount
	if done := r.swap(); done != (rebuild.Swapped{Left: 1}) {
		t.Errorf("%+v", done)
	}
	expect(t, current(t, r.pool, "a"), "EUR 101.00 2 open a-2 false -")
}

// An account whose version is higher than the rebuilt one is left alone. If that happens after the
// comparison, the swap refuses another mapping, because the row would come from the old one.
func TestASwapByAnotherMappingLeavesNoAccountAlone(t *testing.T) {
	r := newRebuilt(t, 2, 100, `UPDATE account_balance SET balance = 99 WHERE account_id = 'a'; UPDATE projector_position SET mapping = 'old'`,
		credit("a", 1, "1", "EUR"), credit("b", 1, "1", "EUR"))
	r.opts.Mapping = readmodeltest.Mapping("new")
	r.exec(`UPDATE account_balance SET version = 2 WHERE account_id = 'b'`)
	done, err := r.trySwap()
	if err == nil || !strings.Contains(errclass.Safe(err), "1 of them would be left alone") {
		t.Errorf("%+v, %v", done, err)
	}
	expect(t, lines(t, r.pool, `SELECT mapping FROM projector_position`), "old")
	expect(t, lines(t, r.pool, `SELECT concat_ws(' ', account_id, balance, version) FROM account_balance ORDER BY 1`), "a 99 1\nb 1.00 2")
}

// If the reply to the COMMIT of a swap is lost, the swap is still carried out once and reported as
// done.
func TestASwapWhoseCommitIsNotAnswered(t *testing.T) {
	database := devtest.Database(t)
	proxy, through, err := pgproxy.ListenBefore(database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	r := newRebuiltOn(t, readmodeltest.OpenPoolAt(t, through), 1, 100, `UPDATE account_balance SET balance = 99`, credit("a", 1, "1", "EUR"))
	proxy.LoseReplies(func() bool { return proxy.Lost() == 0 })
	if done := r.swap(); done != (rebuild.Swapped{Replaced: 1}) || proxy.Lost() != 1 {
		t.Errorf("%+v, %d replies lost", done, proxy.Lost())
	}
	expect(t, current(t, r.pool, "a"), "EUR 1.00 1 open a-1 false -")
	expect(t, lines(t, r.pool, `SELECT count(*) FROM dlq_action`), "1")
}

// The session that holds the lock of a rebuild is idle while the topic is read. The time limit of
// the login for idle sessions does not end it.
func TestALongRebuildKeepsItsLock(t *testing.T) {
	database := devtest.Database(t)
	if _, err := readmodeltest.OpenPoolAt(t, database).Exec(t.Context(), `DO $$ BEGIN
		IF EXISTS (SELECT FROM pg_settings WHERE name = 'idle_session_timeout') THEN -- not in PostgreSQL 13
			EXECUTE format('ALTER DATABASE %I SET idle_session_timeout = 300', current_database());
		END IF;
	END $$`); err != nil {
		t.Fatal(err)
	}
	pool := readmodeltest.OpenPoolAt(t, database)
	shadow, err := rebuild.OpenShadow(t.Context(), pool, balance.Definition{}, 100, 0)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, lines(t, pool, `SELECT pg_sleep(1)::text`), "")
	if err := shadow.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A rebuild through a pooler that ignores search_path would write to the live tables. It is refused
// before it has changed or locked anything.
func TestARebuildWithoutItsSearchPathIsRefused(t *testing.T) {
	database := devtest.Database(t)
	pool := readmodeltest.OpenPoolAt(t, database)
	w := newWorker(t, pool, partition)
	w.MustClaim("me", projection.NoOffset)
	w.MustFold(credit("a", 1, "1", "EUR"))
	w.MustFlush()
	proxy, through, err := pgproxy.ListenBefore(database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	proxy.Ignore("search_path")
	refused, err := rebuild.OpenShadow(t.Context(), readmodeltest.OpenPoolAt(t, through), balance.Definition{}, 100, 0)
	if err == nil {
		t.Fatal("not refused", refused.Close(t.Context()))
	}
	if !strings.Contains(err.Error(), "search_path") || !strings.Contains(err.Error(), "direct connection") {
		t.Errorf("%v", err)
	}
	expect(t, lines(t, pool, `SELECT count(*) FROM pg_namespace WHERE nspname = 'projector_rebuild'`), "0")
	expect(t, lines(t, pool, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'`), "0")
	openShadow(t, pool, credit("a", 1, "1", "EUR"))
}
