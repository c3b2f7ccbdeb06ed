package balance_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/devstack/devtest"
	"projector/projection"
	"projector/readmodel"
	"projector/readmodel/balance"
	"projector/readmodel/readmodeltest"
	"projector/sql"
)

// lookUps counts the accounts that are looked up by their keys, and the queries of all versions.
type lookUps struct {
	accounts, indexes atomic.Int64
	reading           func(context.Context) // called before all accounts are read
}

func (l *lookUps) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if q.SQL == sql.Query("load_index") {
		l.indexes.Add(1)
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
	if q.SQL == sql.AccountsOf(readmodel.BalanceName).Query("load_accounts") {
		l.accounts.Add(int64(len(q.Args[0].([]string))))
	}
}

func (l *lookUps) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// openCounted opens a pool that counts the look-ups.
func openCounted(t *testing.T) (*pgxpool.Pool, *lookUps) {
	t.Helper()
	queries := &lookUps{}
	return readmodeltest.OpenPoolAt(t, devtest.Database(t), readmodel.WithTracer(queries)), queries
}

// indexedAccounts is much more than the look-ups after which all versions are read.
const indexedAccounts = 2000

// firstEvents returns the first events of many accounts.
func firstEvents() []string {
	values := make([]string, indexedAccounts)
	for i := range values {
		values[i] = credit(fmt.Sprintf("acc-%04d", i), 1, "1", "EUR")
	}
	return values
}

// deliverOnce applies the events. It returns workers of another group, which will get the same
// events again. Their cache is too small for all accounts.
func deliverOnce(t *testing.T, pool *pgxpool.Pool, events []string, versions *balance.VersionReader) (again [2]*worker) {
	t.Helper()
	first := newWorker(t, pool, partition)
	first.MustClaim("me", projection.NoOffset)
	first.MustFold(events...)
	first.MustFlush()
	for i := range again {
		p := readmodel.Partition{Group: "another", Topic: "events", Number: int32(i)}
		again[i] = newWorkerWith(t, pool, p, func(cfg *balance.Config) {
			cfg.CacheBytes, cfg.Versions = func() int { return 64 << 10 }, versions
		})
		again[i].MustClaim("other", projection.NoOffset)
	}
	return again
}

// expectDuplicates folds events that are already applied.
func expectDuplicates(t *testing.T, w *worker, events []string) {
	t.Helper()
	w.MustFold(events...)
	if changes := w.MustFlush(); changes.Outcomes[projection.Duplicate] != len(events) {
		t.Fatalf("outcomes %v of %d duplicates", changes.Outcomes, len(events))
	}
}

// awaitIndex delivers the events repeatedly until no account is looked up.
func (l *lookUps) awaitIndex(t *testing.T, w *worker, events []string) {
	t.Helper()
	for range 100 {
		l.accounts.Store(0)
		expectDuplicates(t, w, events)
		if l.accounts.Load() == 0 {
			return
		}
	}
	t.Fatalf("%d accounts were looked up once more for duplicates", l.accounts.Load())
}

func versionReader(t *testing.T, pool *pgxpool.Pool, indexBytes int) *balance.VersionReader {
	t.Helper()
	return balance.NewVersionReader(readmodel.RunConfig{Pool: pool, IndexBytes: indexBytes, Stopping: t.Context(), Log: slog.New(slog.DiscardHandler)})
}

func TestARedeliveredTopicReadsAllAccountsOnce(t *testing.T) {
	t.Parallel()
	pool, queries := openCounted(t)
	events := firstEvents()
	again := deliverOnce(t, pool, events, versionReader(t, pool, 1<<20))
	for _, w := range again {
		queries.awaitIndex(t, w, events)
	}
	if n := queries.indexes.Load(); n != 1 {
		t.Errorf("all accounts were read %d times", n)
	}
	again[0].MustFold(credit("acc-0007", 2, "5", "EUR"), credit("acc-0008", 1, "1", "EUR"), credit("new", 1, "5", "EUR"))
	changes := again[0].MustFlush()
	if changes.Outcomes[projection.Applied] != 2 || changes.Outcomes[projection.Duplicate] != 1 {
		t.Errorf("outcomes %v of two new events and a duplicate", changes.Outcomes)
	}
	expect(t, current(t, pool, "acc-0007"), "EUR 6.00 2 open acc-0007-2 false -")
}

// TestAnIndexIsOfTheClaim restores the database to fewer and fewer accounts. An index that was read
// before a claim must not be used after this claim, no matter which worker read the index.
func TestAnIndexIsOfTheClaim(t *testing.T) {
	t.Parallel()
	pool, queries := openCounted(t)
	events := firstEvents()
	again := deliverOnce(t, pool, events, versionReader(t, pool, 1<<20))
	for i, kept := range []int{1500, 1250, 1000, 750} {
		one, other := again[i%2], again[1-i%2]
		queries.awaitIndex(t, one, events) // the worker that claimed last has read all accounts again
		queries.awaitIndex(t, other, events)
		if _, err := pool.Exec(t.Context(), `DELETE FROM projector_position`); err != nil {
			t.Fatal(err)
		}
		if _, err := pool.Exec(t.Context(), `DELETE FROM account_balance WHERE account_id >= $1`, fmt.Sprintf("acc-%04d", kept)); err != nil {
			t.Fatal(err)
		}
		one.MustClaim("other", projection.NoOffset)
		one.MustFold(events...)
		if n := one.MustFlush().Outcomes[projection.Applied]; n != indexedAccounts-kept {
			t.Errorf("restored to %d accounts: %d events were applied, want %d", kept, n, indexedAccounts-kept)
		}
		other.MustClaim("other", projection.NoOffset)
	}
}

func TestAccountsWithoutRoomForAnIndexAreLookedUp(t *testing.T) {
	t.Parallel()
	pool, queries := openCounted(t)
	events := firstEvents()
	again := deliverOnce(t, pool, events, versionReader(t, pool, indexedAccounts/2*32))
	queries.accounts.Store(0)
	for _, w := range again {
		expectDuplicates(t, w, events)
	}
	if n := queries.accounts.Load(); n != 2*indexedAccounts {
		t.Errorf("%d accounts were looked up, want each", n)
	}
	if n := queries.indexes.Load(); n != 1 {
		t.Errorf("to read all accounts was tried %d times", n)
	}
}

// TestOneQueryOfAllVersionsAtATime blocks the query that one partition has started, and then
// another partition claims. The result of this query is too old for the second partition.
func TestOneQueryOfAllVersionsAtATime(t *testing.T) {
	t.Parallel()
	pool, queries := openCounted(t)
	events := firstEvents()
	again := deliverOnce(t, pool, events, versionReader(t, pool, 1<<20).ReadWithin(time.Hour))
	status, release := context.WithCancel(t.Context())
	defer release()
	ctx, stop := context.WithCancel(t.Context())
	queries.reading = func(context.Context) {
		stop() // the worker that started the query must not wait for it
		<-status.Done()
	}
	for records := again[0].Records(events...); ctx.Err() == nil; {
		n, err := again[0].Fold(ctx, records[:min(512, len(records))], 1<<20)
		if err != nil && ctx.Err() == nil {
			t.Fatal(err)
		}
		records = records[n:]
	}
	again[1].MustClaim("other", projection.NoOffset)
	expectDuplicates(t, again[1], events)
	if n := queries.indexes.Load(); n != 1 {
		t.Errorf("%d readings at once", n)
	}
	release() // now the query can end
	for range 100 {
		if expectDuplicates(t, again[1], events); queries.indexes.Load() > 1 {
			break
		}
	}
	if n := queries.indexes.Load(); n != 2 {
		t.Errorf("all accounts were read %d times, want once more for the later claim", n)
	}
}

// TestTheQueryOfAllVersionsEndsWithTheProcess blocks the query of all versions until its context
// ends. The context must end with the process, not only at the query's own deadline.
func TestTheQueryOfAllVersionsEndsWithTheProcess(t *testing.T) {
	t.Parallel()
	pool, queries := openCounted(t)
	events := firstEvents()
	life, stop := context.WithCancel(t.Context())
	defer stop()
	var log bytes.Buffer
	again := deliverOnce(t, pool, events, balance.NewVersionReader(readmodel.RunConfig{
		Pool: pool, IndexBytes: 1 << 20, Stopping: life, Log: slog.New(slog.NewJSONHandler(&log, nil)),
	}))
	why := make(chan error, 1)
	queries.reading = func(ctx context.Context) {
		stop()
		<-ctx.Done()
		why <- ctx.Err()
	}
	expectDuplicates(t, again[0], events)
	if err := <-why; !errors.Is(err, context.Canceled) {
		t.Errorf("the reading ended by %v, want that the process is queries to stop", err)
	}
	pool.Close() // waits for the connection of the query
	if log.Len() > 0 {
		t.Errorf("a stop is no failure: %s", &log)
	}
}

// TestAFailedQueryOfAllVersionsIsLogged shows that a failure is logged once, with the reason.
func TestAFailedQueryOfAllVersionsIsLogged(t *testing.T) {
	t.Parallel()
	pool, _ := openCounted(t)
	events := firstEvents()
	log := make(logLines, 10)
	again := deliverOnce(t, pool, events, balance.NewVersionReader(readmodel.RunConfig{
		Pool: pool, IndexBytes: indexedAccounts / 2 * 32, Stopping: t.Context(), Log: slog.New(slog.NewJSONHandler(log, nil)),
	}))
	for range 3 {
		for _, w := range again {
			expectDuplicates(t, w, events)
		}
	}
	if line := <-log; !strings.Contains(line, "more accounts than there is memory for") {
		t.Errorf("the log has %s", line)
	}
	if len(log) > 0 {
		t.Errorf("one reading has failed, and then the log has %s", <-log)
	}
}

// logLines receives the lines of a log.
type logLines chan string

func (l logLines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}
