package readmodel_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/balance"
)

// groupWorkers are workers of neighbouring partitions that write together. Each has
// folded one event.
func groupWorkers(t *testing.T, pool *pgxpool.Pool) []*worker {
	t.Helper()
	group := balance.NewGroup(pool)
	workers := make([]*worker, 6)
	for i := range workers {
		w := newWorker(t, pool, readmodel.Partition{Group: "g", Topic: "events", Number: int32(i)})
		w.Balance = balance.New(balance.Config{
			Pool: pool, Formats: event.Always(w.format), FirstVersion: 1, ParkLimit: 100, CacheBytes: func() int { return 1 << 20 }, Group: group,
		}, readmodel.Partition{Group: "g", Topic: "events", Number: int32(i)})
		w.claim("me", projection.NoOffset)
		w.fold(credit(account(i), 1, "1.00", "EUR"))
		workers[i] = w
	}
	return workers
}

func account(i int) string { return fmt.Sprintf("a%d", i) }

// writeAtOnce has all write at the same time and answers their errors.
func writeAtOnce(workers []*worker) []error {
	failures := make([]error, len(workers))
	var writing sync.WaitGroup
	for i, w := range workers {
		writing.Go(func() { _, failures[i] = w.Flush(w.t.Context(), at(w.next)) })
	}
	writing.Wait()
	return failures
}

func TestWhatIsWrittenTogetherIsWritten(t *testing.T) {
	pool := openPool(t)
	workers := groupWorkers(t, pool)
	for version := 2; version < 12; version++ {
		for i, err := range writeAtOnce(workers) {
			if err != nil {
				t.Fatal(err)
			}
			expect(t, current(t, pool, account(i)), fmt.Sprintf("EUR %d.00 %d open a%d-%d false -", version-1, version-1, i, version-1))
			workers[i].fold(credit(account(i), version, "1.00", "EUR"))
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
	other.claim("another owner", projection.NoOffset)
	for i, err := range writeAtOnce(workers) {
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

// A row that somebody else keeps locked stops its own partition and no other.
func TestALockedAccountStopsItsPartitionOnly(t *testing.T) {
	pool := openPool(t)
	workers := groupWorkers(t, pool)
	for _, err := range writeAtOnce(workers) {
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
		w.fold(credit(account(i), 2, "1.00", "EUR"))
	}
	stuck := make(chan error)
	go func() {
		_, err := workers[0].Flush(t.Context(), at(workers[0].next))
		stuck <- err
	}()
	for i, err := range writeAtOnce(workers[1:]) {
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
