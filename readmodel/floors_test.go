package readmodel_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/devstack/devtest"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/sql"
)

// lookUps counts what is asked of account_balance.
type lookUps struct {
	accounts, floors atomic.Int64
	reading          func(context.Context) // is called before all accounts are read
}

func (l *lookUps) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if q.SQL == sql.Query("load_floors") {
		l.floors.Add(1)
		if l.reading != nil {
			l.reading(ctx)
		}
	}
	return ctx
}
func (l *lookUps) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (l *lookUps) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (l *lookUps) TraceBatchQuery(_ context.Context, _ *pgx.Conn, q pgx.TraceBatchQueryData) {
	if q.SQL == sql.Query("load_accounts") {
		l.accounts.Add(int64(len(q.Args[0].([]string))))
	}
}
func (l *lookUps) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// openCounted is openPool with its look-ups counted.
func openCounted(t *testing.T) (*pgxpool.Pool, *lookUps) {
	t.Helper()
	asked := &lookUps{}
	pool, err := readmodel.OpenPool(t.Context(), devtest.Database(t), readmodel.WithTracer(asked))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool, asked
}

const flooredAccounts = 4000

// firstEvents are the first events of many accounts.
func firstEvents(amount string) []string {
	values := make([]string, flooredAccounts)
	for i := range values {
		values[i] = credit(fmt.Sprintf("acc-%04d", i), 1, amount, "EUR")
	}
	return values
}

// flooredWorker is a worker that may read all accounts at once.
func flooredWorker(t *testing.T, pool *pgxpool.Pool, floors *readmodel.FloorReader, p readmodel.Partition) *worker {
	t.Helper()
	format := jsonFormat(t)
	return &worker{t: t, format: format, Balance: readmodel.NewBalance(readmodel.BalanceConfig{
		Pool: pool, Formats: event.Always(format), FirstVersion: 1, ParkLimit: 100, CacheBytes: func() int { return 1 << 20 },
		Floors: floors,
	}, p)}
}

// expectDuplicates judges what has been applied already.
func expectDuplicates(t *testing.T, w *worker, values []string) {
	t.Helper()
	w.judge(values...)
	if changes := w.mustFlush(); changes.Outcomes[projection.Duplicate] != len(values) {
		t.Errorf("outcomes %v of %d duplicates", changes.Outcomes, len(values))
	}
}

func TestARedeliveredTopicReadsAllAccountsOnce(t *testing.T) {
	pool, asked := openCounted(t)
	events := firstEvents("1")
	first := newWorker(t, pool, partition)
	first.claim("me", projection.NoOffset)
	first.judge(events...)
	first.mustFlush()

	floors := readmodel.NewFloorReader(pool, 1<<20)
	var again [2]*worker
	for i := range again {
		again[i] = flooredWorker(t, pool, floors, readmodel.Partition{Group: "another", Topic: "events", Number: int32(i)})
		again[i].claim("other", projection.NoOffset)
	}
	asked.accounts.Store(0)
	expectDuplicates(t, again[0], events)
	expectDuplicates(t, again[1], events)
	if n := asked.accounts.Load(); n > 2*2048 {
		t.Errorf("%d accounts were looked up for duplicates of %d", n, flooredAccounts)
	}
	if n := asked.floors.Load(); n != 1 {
		t.Errorf("all accounts were read %d times", n)
	}

	again[0].judge(credit("acc-0007", 2, "5", "EUR"), credit("acc-0008", 1, "1", "EUR"), credit("new", 1, "5", "EUR"))
	changes := again[0].mustFlush()
	if changes.Outcomes[projection.Applied] != 2 || changes.Outcomes[projection.Duplicate] != 1 {
		t.Errorf("outcomes %v of two new events and a duplicate", changes.Outcomes)
	}
	expect(t, current(t, pool, "acc-0007"), "EUR 6.00 2 open acc-0007-2 false -")
}

// TestFloorsAreOfTheClaim restores the database to what it was at first: what was read
// of it before must not be taken for what it holds, whoever read it.
func TestFloorsAreOfTheClaim(t *testing.T) {
	pool, asked := openCounted(t)
	events := firstEvents("1")
	floors := readmodel.NewFloorReader(pool, 1<<20)
	first := newWorker(t, pool, partition)
	first.claim("me", projection.NoOffset)
	first.judge(events...)
	first.mustFlush()
	var both [2]*worker
	for i := range both {
		both[i] = flooredWorker(t, pool, floors, readmodel.Partition{Group: "another", Topic: "events", Number: int32(i)})
	}
	both[0].claim("other", projection.NoOffset)
	expectDuplicates(t, both[0], events)

	if _, err := pool.Exec(t.Context(), `DELETE FROM account_balance WHERE account_id >= 'acc-2000'; DELETE FROM projector_position`); err != nil {
		t.Fatal(err)
	}
	both[1].claim("other", projection.NoOffset)
	both[1].judge(events...)
	changes := both[1].mustFlush()
	if got := changes.Outcomes[projection.Applied]; got != flooredAccounts-2000 {
		t.Errorf("%d events were applied to a restored database, want %d", got, flooredAccounts-2000)
	}
	if n := asked.floors.Load(); n != 2 {
		t.Errorf("all accounts were read %d times, want once for each claim", n)
	}
	if _, err := pool.Exec(t.Context(), `DELETE FROM account_balance WHERE account_id >= 'acc-3000'`); err != nil {
		t.Fatal(err)
	}
	both[0].claim("other", projection.NoOffset)
	both[0].judge(events...)
	changes = both[0].mustFlush()
	if got := changes.Outcomes[projection.Applied]; got != flooredAccounts-3000 {
		t.Errorf("%d events were applied by one who had floors of before, want %d", got, flooredAccounts-3000)
	}
}

func TestAccountsWithoutRoomForFloorsAreLookedUp(t *testing.T) {
	pool, asked := openCounted(t)
	events := firstEvents("1")
	first := newWorker(t, pool, partition)
	first.claim("me", projection.NoOffset)
	first.judge(events...)
	first.mustFlush()
	again := flooredWorker(t, pool, readmodel.NewFloorReader(pool, 1000), readmodel.Partition{Group: "another", Topic: "events"})
	again.claim("other", projection.NoOffset)
	asked.accounts.Store(0)
	expectDuplicates(t, again, events)
	if n := asked.accounts.Load(); n != flooredAccounts {
		t.Errorf("%d accounts were looked up, want %d", n, flooredAccounts)
	}
	if n := asked.floors.Load(); n != 1 {
		t.Errorf("reading all accounts was tried %d times, want once a claim", n)
	}
}

// TestReadingFloorsEndsWithItsReader has a worker stop while all accounts are read.
func TestReadingFloorsEndsWithItsReader(t *testing.T) {
	pool, asked := openCounted(t)
	events := firstEvents("1")
	first := newWorker(t, pool, partition)
	first.claim("me", projection.NoOffset)
	first.judge(events...)
	first.mustFlush()
	again := flooredWorker(t, pool, readmodel.NewFloorReader(pool, 1<<20), readmodel.Partition{Group: "another", Topic: "events"})
	again.claim("other", projection.NoOffset)

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	asked.reading = func(reading context.Context) {
		stop()
		<-reading.Done()
		close(ended)
	}
	records := again.records(events...)
	for len(records) > 0 && ctx.Err() == nil {
		n, err := again.Judge(ctx, records[:min(512, len(records))], 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		records = records[n:]
	}
	<-ended
	if len(records) == 0 {
		t.Error("all was judged before all accounts were read")
	}
}
