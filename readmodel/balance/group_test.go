package balance_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/errclass"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/balance"
)

// groupWorkers returns workers of neighbouring partitions that write together. Each worker has
// folded one event.
func groupWorkers(t *testing.T, pool *pgxpool.Pool) []*worker {
	t.Helper()
	group := balance.NewGroup(pool, nil)
	workers := make([]*worker, 6)
	for i := range workers {
		w := groupWorker(t, pool, group, i)
		w.MustFold(credit(account(i), 1, "1.00", "EUR"))
		workers[i] = w
	}
	return workers
}

// groupWorker returns a worker that has claimed a partition.
func groupWorker(t *testing.T, pool *pgxpool.Pool, group *balance.Group, i int) *worker {
	t.Helper()
	p := readmodel.Partition{Group: "g", Topic: "events", Number: int32(i)}
	w := newWorker(t, pool, p)
	w.Projection = balance.New(balance.Config{Group: group, RunConfig: readmodel.RunConfig{
		Pool: pool, Formats: event.Always(w.Format), FirstVersion: 1, ParkLimit: 100, CacheBytes: func() int { return 1 << 20 },
	}}, p)
	w.MustClaim("me", projection.NoOffset)
	return w
}

func account(i int) string { return fmt.Sprintf("a%d", i) }

// writeAtOnce makes all workers write at the same time and returns their errors.
func writeAtOnce(t *testing.T, workers []*worker) []error {
	t.Helper()
	failures := make([]error, len(workers))
	var writing sync.WaitGroup
	for i, w := range workers {
		writing.Go(func() { _, failures[i] = w.Flush(t.Context(), at(w.Next)) })
	}
	writing.Wait()
	return failures
}

func TestWhatIsWrittenTogetherIsWritten(t *testing.T) {
	pool := openPool(t)
	workers := groupWorkers(t, pool)
	for version := 2; version < 12; version++ {
		for i, err := range writeAtOnce(t, workers) {
			if err != nil {
				t.Fatal(err)
			}
			expect(t, current(t, pool, account(i)), fmt.Sprintf("EUR %d.00 %d open a%d-%d false -", version-1, version-1, i, version-1))
			workers[i].MustFold(credit(account(i), version, "1.00", "EUR"))
		}
	}
	positions, err := readmodel.LoadPositions(t.Context(), pool, "g", "events")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range positions {
		if p.Next != 10 {
			t.Errorf("partition %d is at %d, want 10", p.Partition, p.Next)
		}
	}
}

func TestAGroupMembersFailureIsItsOwn(t *testing.T) {
	pool := openPool(t)
	workers := groupWorkers(t, pool)
	other := newWorker(t, pool, readmodel.Partition{Group: "g", Topic: "events", Number: 2})
	other.MustClaim("another owner", projection.NoOffset)
	for i, err := range writeAtOnce(t, workers) {
		if i == 2 {
			if !errors.Is(err, projection.ErrFenced) {
				t.Errorf("the fenced one wrote: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		expect(t, current(t, pool, account(i)), fmt.Sprintf("EUR 1.00 1 open a%d-1 false -", i))
	}
	var rows int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM account_balance`).Scan(&rows); err != nil || rows != len(workers)-1 {
		t.Errorf("%d rows, %v", rows, err)
	}
}

// If another session locks a row, only the partition of this row stops.
func TestALockedAccountStopsItsPartitionOnly(t *testing.T) {
	pool := openPool(t)
	workers := groupWorkers(t, pool)
	for _, err := range writeAtOnce(t, workers) {
		if err != nil {
			t.Fatal(err)
		}
	}
	lock, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Exec(t.Context(), `SELECT FROM account_balance WHERE account_id = 'a0' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	for i, w := range workers {
		w.MustFold(credit(account(i), 2, "1.00", "EUR"))
	}
	stuck := make(chan error)
	go func() {
		_, err := workers[0].Flush(t.Context(), at(workers[0].Next))
		stuck <- err
	}()
	for i, err := range writeAtOnce(t, workers[1:]) {
		if err != nil {
			t.Fatal(err)
		}
		expect(t, current(t, pool, account(i+1)), fmt.Sprintf("EUR 2.00 2 open a%d-2 false -", i+1))
	}
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-stuck; err != nil {
		t.Fatal(err)
	}
	expect(t, current(t, pool, "a0"), "EUR 2.00 2 open a0-2 false -")
}

// knownWorkers returns busy workers of neighbouring partitions. Each worker has an account in the
// database that is not in its cache.
func knownWorkers(t *testing.T, pool *pgxpool.Pool) []*worker {
	t.Helper()
	for i, w := range groupWorkers(t, pool) {
		if _, err := w.Flush(t.Context(), at(w.Next)); err != nil {
			t.Fatal(i, err)
		}
	}
	busy := 0
	group := balance.NewGroup(pool, func() int { return busy })
	workers := make([]*worker, 6)
	for i := range workers {
		workers[i] = groupWorker(t, pool, group, i)
	}
	busy = len(workers)
	return workers
}

func TestWhatIsReadTogetherIsRead(t *testing.T) {
	pool := openPool(t)
	workers := knownWorkers(t, pool)
	errs := make([]error, len(workers))
	var folding sync.WaitGroup
	for i, w := range workers {
		records := w.Records(credit(account(i), 2, "1.00", "EUR"), credit("a0", 2, "1.00", "EUR")) // the account a0 is in all partitions
		folding.Go(func() { _, errs[i] = w.Fold(t.Context(), records, 10) })
	}
	folding.Wait()
	for i, err := range errs {
		if err != nil {
			t.Fatal(i, err)
		}
		if n := len(workers[i].DeadLetters()); n > 0 {
			t.Errorf("partition %d has %d dead letters: it does not know its accounts", i, n)
		}
	}
	for i, err := range writeAtOnce(t, workers[1:]) {
		if err != nil && !errors.Is(err, projection.ErrStale) { // another partition has written the shared account first
			t.Fatal(i, err)
		}
	}
}

// TestADamagedRowStopsItsPartitionOnly shows that other partitions continue although their accounts
// are read in the same query.
func TestADamagedRowStopsItsPartitionOnly(t *testing.T) {
	pool := openPool(t)
	workers := knownWorkers(t, pool)
	if _, err := pool.Exec(t.Context(), `UPDATE account_balance SET balance = 'NaN', version = 2 WHERE account_id = 'a3'`); err != nil {
		t.Fatal(err)
	}
	errs := make([]error, len(workers))
	ctx := readmodel.WithReader(t.Context(), func() string { return " --topic=bank" })
	var folding sync.WaitGroup
	for i, w := range workers {
		records := w.Records(credit(account(i), 2, "1.00", "EUR"))
		folding.Go(func() { _, errs[i] = w.Fold(ctx, records, 10) })
	}
	folding.Wait()
	for i, err := range errs {
		text := errclass.Safe(err)
		damaged := strings.Contains(text, `the row of account "a3" cannot be read`) && strings.Contains(text, "projector rebuild --topic=bank --yes")
		if damaged != (i == 3) {
			t.Errorf("partition %d: %v", i, err)
		}
	}
}
