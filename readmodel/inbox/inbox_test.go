package inbox_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/devstack/devtest"
	"projector/projection"
	"projector/readmodel"
	"projector/readmodel/inbox"
	"projector/readmodel/readmodeltest"
	"projector/readmodel/turnover"
)

// retention is the default of --retention and of run's --inbox-retention.
const retention = 7 * 24 * time.Hour

// markers adds n markers of a given age to a handler's inbox.
func markers(t *testing.T, pool *pgxpool.Pool, handler string, n int, age time.Duration) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `INSERT INTO inbox SELECT $1 || '-' || $3::text || '-' || n, $1, now() - $3::interval
		FROM generate_series(1, $2::int) AS n`, handler, n, age)
	if err != nil {
		t.Fatal(err)
	}
}

const left = "SELECT concat_ws(' ', handler, count(*)) FROM inbox GROUP BY handler ORDER BY handler"

func TestPruningDeletesWhatIsTooOldInPieces(t *testing.T) {
	pool := openPool(t)
	markers(t, pool, "a", 12_000, 8*24*time.Hour)
	markers(t, pool, "a", 30, 6*24*time.Hour)
	markers(t, pool, "b", 20, 9*24*time.Hour)
	var pieces []int64
	if err := inbox.Of("a").Prune(t.Context(), pool, retention, func(n int64) { pieces = append(pieces, n) }); err != nil {
		t.Fatal(err)
	}
	if len(pieces) != 3 || pieces[0]+pieces[1]+pieces[2] != 12_000 {
		t.Errorf("pieces %v, want three, together 12000", pieces)
	}
	same(t, "left", lines(t, pool, left), "a 30\nb 20")
	same(t, "noted", lines(t, pool, "SELECT handler || ' ' || (until < now() - interval '167 hours') FROM inbox_pruned"), "a true")
	old, err := inbox.Old(t.Context(), pool, retention)
	if err != nil || len(old) != 2 || old[0].Markers != 0 || old[1].Markers != 20 {
		t.Fatalf("%+v, error %v", old, err)
	}
	if err := inbox.Of(old[1].Handler).Prune(t.Context(), pool, retention, nil); err != nil {
		t.Fatal(err)
	}
	same(t, "left", lines(t, pool, left), "a 30")
	if n, err := inbox.Of("a").Count(t.Context(), pool); n != 30 || err != nil {
		t.Errorf("counted %d, error %v; want 30", n, err)
	}
}

// If the reply to a COMMIT is lost, the markers are deleted and counted.
func TestPruningWhoseCommitIsNotAnswered(t *testing.T) {
	database := devtest.Database(t)
	pool := readmodeltest.OpenPoolAt(t, database)
	markers(t, pool, "a", 3, 8*24*time.Hour)
	losing, lose := readmodeltest.OpenLosing(t, database)
	lose.Store(true)
	var deleted int64
	if err := inbox.Of("a").Prune(t.Context(), losing, retention, func(n int64) { deleted += n }); err != nil || deleted != 3 {
		t.Errorf("%d deleted, error %v", deleted, err)
	}
	same(t, "left", lines(t, pool, left), "")
}

// TestNobodyPrunesWhilePositionsAreSet shows that no marker is pruned while a position is set back,
// and none until its records were read again. Before an operator sets a position, the program
// checks which events still have markers. The result of this check must stay valid until the
// records were read.
func TestNobodyPrunesWhilePositionsAreSet(t *testing.T) {
	pool := openPool(t)
	of := readmodel.Partition{Projection: turnover.Name, Group: "g", Topic: "events"}
	_, err := pool.Exec(t.Context(), `INSERT INTO projector_position
		(consumer_group, topic, partition, next_offset, judged_until, topic_id, owner, fence, projection)
		VALUES ('g', 'events', 0, 9, 9, 'id', 'me', 1, 'daily_turnover')`)
	if err != nil {
		t.Fatal(err)
	}
	markers(t, pool, turnover.Name, 10, 8*24*time.Hour)
	prune := func() int64 { return runTasks(t, pool, retention).deleted }
	log := projection.Log{TopicID: "id", End: 9, EpochEnd: projection.NoOffset, ProcessedEnd: projection.NoOffset}
	sets := []readmodel.PositionSet{{Want: projection.Reposition{To: 2}, Log: log}}
	refused := errors.New("not now")
	set := func(result error) error {
		_, err := readmodel.SetPositions(t.Context(), pool, of, sets, func(context.Context, readmodel.Querier) error {
			if n := prune(); n != 0 {
				t.Errorf("%d markers were pruned while a position was set", n)
			}
			return result
		}, "me", "why")
		return err
	}
	const at = "SELECT concat_ws(' ', next_offset, judged_until) FROM projector_position"
	if err := set(refused); !errors.Is(err, refused) {
		t.Errorf("error %v", err)
	}
	same(t, "refused", lines(t, pool, at), "9 9")
	if err := set(nil); err != nil {
		t.Fatal(err)
	}
	same(t, "set", lines(t, pool, at), "2 9")
	var moved *projection.RefusedPositionError
	stale := []readmodel.PositionSet{{Want: projection.Reposition{Expect: new(int64(9))}, Log: log}}
	if _, err := readmodel.SetPositions(t.Context(), pool, of, stale, nil, "me", "why"); !errors.As(err, &moved) {
		t.Errorf("a position was set that has moved since: %v", err)
	}
	same(t, "moved", lines(t, pool, at), "2 9")
	if n := prune(); n != 0 {
		t.Errorf("%d markers were pruned before the records were read again", n)
	}
	if _, err := pool.Exec(t.Context(), "UPDATE projector_position SET next_offset = 9"); err != nil {
		t.Fatal(err)
	}
	if n := prune(); n != 10 {
		t.Errorf("%d markers were pruned, want all", n)
	}
}

// The task of a running projection stops while another session prunes. The command waits for it.
func TestOnlyOnePrunesAtATime(t *testing.T) {
	pool := openPool(t)
	markers(t, pool, turnover.Name, 10, 8*24*time.Hour)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	if _, err := tx.Exec(t.Context(), "LOCK TABLE inbox_pruned IN SHARE UPDATE EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	if n := runTasks(t, pool, retention).deleted; n != 0 {
		t.Errorf("a task pruned %d markers beside another session", n)
	}
	deleted, ended := int64(0), make(chan error, 1)
	go func() {
		ended <- inbox.Of(turnover.Name).Prune(t.Context(), pool, retention, func(n int64) { deleted += n })
	}()
	readmodeltest.AwaitLock(t, pool, 1, func() bool { return len(ended) > 0 })
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil || deleted != 10 {
		t.Errorf("pruned %d markers after the wait, error %v", deleted, err)
	}
}

// Any login that may connect can hold an advisory lock for ever. Pruning does not wait for such a lock.
func TestPruningWaitsForNoAdvisoryLock(t *testing.T) {
	pool := openPool(t)
	markers(t, pool, "a", 10, 8*24*time.Hour)
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "SET LOCAL ROLE pg_monitor; SELECT pg_advisory_xact_lock(hashtextextended('inbox a', 7215))"); err != nil {
			return err
		}
		return inbox.Of("a").Prune(t.Context(), pool, retention, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "left", lines(t, pool, left), "")
}

// TestPruningWhileEventsAreWritten prunes while events are written. No writer fails, and no young
// marker is removed.
func TestPruningWhileEventsAreWritten(t *testing.T) {
	pool := openPool(t)
	markers(t, pool, turnover.Name, 20_000, 8*24*time.Hour)
	f := newFeeder(t, pool, turnover.Definition(), partition)
	var pruning sync.WaitGroup
	pruning.Go(func() {
		if err := inbox.Of(turnover.Name).Prune(context.WithoutCancel(t.Context()), pool, retention, nil); err != nil {
			t.Error(err)
		}
	})
	for n := range 20 {
		f.Feed(eventAs(string(rune('a'+n)), "FundsCredited", "a", n+1, noon, eur("1")))
	}
	pruning.Wait()
	same(t, "turnover", turnoverOf(t, pool), "2026-01-01 EUR 20.00 0.00 20")
	same(t, "left", lines(t, pool, left), turnover.Name+" 20")
}

// pruned is an Observer that records the calls about the inbox.
type pruned struct {
	readmodeltest.Observer
	rows, deleted int64
}

func (p *pruned) InboxRows(n int64)   { p.rows = n }
func (p *pruned) InboxPruned(n int64) { p.deleted += n }

// runTasks runs the tasks of daily_turnover once.
func runTasks(t *testing.T, pool *pgxpool.Pool, retention time.Duration) *pruned {
	t.Helper()
	reported := &pruned{}
	cfg := readmodel.RunConfig{Pool: pool, InboxRetention: retention, Observer: reported}
	for _, task := range turnover.Definition().Tasks(cfg) {
		if err := task.Run(t.Context()); err != nil {
			t.Errorf("%s: %v", task.Name, err)
		}
	}
	return reported
}

func TestTasksPruneAndCountTheInbox(t *testing.T) {
	pool := openPool(t)
	markers(t, pool, turnover.Name, 5, 2*time.Hour)
	markers(t, pool, turnover.Name, 7, time.Minute)
	reported := runTasks(t, pool, time.Hour)
	if reported.deleted != 5 || reported.rows != 7 {
		t.Errorf("deleted %d, counted %d; want 5 and 7", reported.deleted, reported.rows)
	}
}

// The time of a failure is from the clock of an instance, which may be ahead of the database's clock.
// A failure that seems to be somewhat later than the pruned markers is doubtful, too. It is not
// doubtful if the pruning was recent, because markers of recent events were then pruned on purpose.
func TestAFailureByAClockThatIsAhead(t *testing.T) {
	for since, doubtful := range map[time.Duration]map[time.Duration]bool{
		7 * 24 * time.Hour: {-time.Hour: true, 30 * time.Minute: true, 2 * time.Hour: false},
		time.Hour:          {-time.Hour: true, time.Minute: false},
	} {
		pool := openPool(t)
		var until time.Time
		if err := pool.QueryRow(t.Context(), "INSERT INTO inbox_pruned VALUES ('a', now() - $1::interval) RETURNING until", since).Scan(&until); err != nil {
			t.Fatal(err)
		}
		doubts, err := inbox.Of("a").Doubts(t.Context(), pool)
		if err != nil {
			t.Fatal(err)
		}
		for after, want := range doubtful {
			if why := doubts(until.Add(after)); (why != "") != want {
				t.Errorf("pruned up to %s ago, failed %s after that: %q", since, after, why)
			}
		}
	}
	pool := openPool(t)
	doubts, err := inbox.Of("a").Doubts(t.Context(), pool)
	if err != nil || doubts(time.Time{}) != "" {
		t.Errorf("nothing was pruned: %v", err)
	}
}
