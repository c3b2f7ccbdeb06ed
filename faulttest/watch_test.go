//go:build faults

package faulttest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"

	"projector/internal/testbank/compare"
)

// watcher polls while the scene runs. It checks that no offset in Kafka is beyond the durable
// position. It also records how much memory the replicas use.
type watcher struct {
	reader compare.Reader
	admin  *kadm.Client
	stop   context.CancelFunc
	ended  sync.WaitGroup

	mu                sync.Mutex // guards the fields below
	db                *pgxpool.Pool
	pids              []int
	memory            int64
	polls             int
	offsetCheckPaused bool
	violations        []string
}

const lookEvery = 20 * time.Millisecond

// startWatch starts the watcher.
func (s *scene) startWatch() {
	s.t.Helper()
	ctx, stop := context.WithCancel(s.t.Context())
	s.watch = &watcher{reader: s.reader, admin: s.admin, db: s.db, stop: stop}
	s.watch.ended.Go(func() { s.watch.run(ctx) })
	s.t.Cleanup(s.watch.end)
}

func (w *watcher) end() {
	w.stop()
	w.ended.Wait()
}

func (w *watcher) run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		w.measure()
		w.poll(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// poll reads Kafka's offsets before the positions. A position that rises between the two reads can
// hide a violation, but it cannot cause a false violation.
func (w *watcher) poll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	w.mu.Lock()
	db, offsetCheckPaused := w.db, w.offsetCheckPaused
	w.mu.Unlock()
	committed, err := w.reader.Committed(ctx, w.admin)
	if err != nil || offsetCheckPaused {
		return
	}
	positions, err := w.reader.Positions(ctx, db)
	if err != nil {
		return // during an outage, the database cannot be read
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.offsetCheckPaused || w.db != db {
		return
	}
	w.polls++
	for p, at := range committed {
		if at > positions[p] {
			w.violations = append(w.violations, fmt.Sprintf("partition %d: committed %d, durable %d", p, at, positions[p]))
		}
	}
}

func (w *watcher) measure() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, pid := range w.pids {
		w.memory = max(w.memory, peak(pid))
	}
}

func (w *watcher) add(pid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pids = append(w.pids, pid)
}

// follow connects the watcher to another database.
func (w *watcher) follow(db *pgxpool.Pool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.db = db
}

// pauseOffsetCheck stops the check of offsets if on is true, and starts it again if on is false.
// The check is off while the database goes back to an earlier state. Kafka's offsets are then
// beyond the database's positions until the replicas have rewound.
func (w *watcher) pauseOffsetCheck(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.offsetCheckPaused = on
}

// findings returns the results of all polls.
func (w *watcher) findings() (polls int, memory int64, violations []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.polls, w.memory, w.violations
}

func each(rows pgx.Rows, into []any, do func()) error {
	_, err := pgx.ForEachRow(rows, into, func() error { do(); return nil })
	return err
}
