package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"projector/internal/devstack"
	"projector/internal/pace"
	"projector/readmodel"
)

const (
	watchEvery  = 20 * time.Millisecond
	memoryEvery = 10 // memory is read at every tenth check
	// stuckAfter is how long a run may make no progress before it fails.
	stuckAfter = 2 * time.Minute
	stopWithin = 40 * time.Second
)

// watcher observes the progress of a projector by the positions in the database. A position is
// committed together with the rows. There are few positions, so the queries cost very little.
type watcher struct {
	conn  *pgx.Conn
	group string
	table table
}

func watch(ctx context.Context, d database, group string, of table) (*watcher, error) {
	conn, err := pgx.Connect(ctx, d.url)
	if err != nil {
		return nil, err
	}
	return &watcher{conn: conn, group: group, table: of}, nil
}

func (w *watcher) pid() int { return int(w.conn.PgConn().PID()) }

func (w *watcher) close() { _ = w.conn.Close(context.Background()) }

// durable returns the number of processed records.
func (w *watcher) durable(ctx context.Context) (n int, err error) {
	err = w.conn.QueryRow(ctx, `SELECT coalesce(sum(next_offset), 0)::bigint FROM projector_position
		WHERE consumer_group = $1`, w.group).Scan(&n)
	return n, err
}

// claimed returns the number of partitions that have an owner.
func (w *watcher) claimed(ctx context.Context) (n int, err error) {
	err = w.conn.QueryRow(ctx, `SELECT count(*) FROM projector_position
		WHERE consumer_group = $1 AND owner <> ''`, w.group).Scan(&n)
	return n, err
}

// check returns what is wrong with the final state, or "".
func (w *watcher) check(ctx context.Context, want string) (string, error) {
	var got string
	if err := w.conn.QueryRow(ctx, w.table.fingerprint).Scan(&got); err != nil {
		return "", err
	}
	if got != want {
		return fmt.Sprintf("the read model sums up to %q and not to %q", got, want), nil
	}
	return "", nil
}

// awaitAlone waits until all other sessions have ended.
func (w *watcher) awaitAlone(ctx context.Context) error {
	for end := time.Now().Add(stopWithin); time.Now().Before(end); {
		var others int
		err := w.conn.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
			AND backend_type = 'client backend' AND pid <> pg_backend_pid()`).Scan(&others)
		if err != nil || others == 0 || pace.Sleep(ctx, watchEvery) != nil {
			return err
		}
	}
	return nil
}

type program struct {
	*devstack.Program
	began *beginning
}

// beginning stores the first part of a program's output, which names the addresses it listens on.
type beginning struct {
	mu   sync.Mutex
	text []byte
}

func (b *beginning) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	const most = 4 << 10
	b.text = append(b.text, p[:min(len(p), most-len(b.text))]...)
	return len(p), nil
}

func (b *beginning) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.text)
}

func (s *stack) startProjector(l *loaded, group string, d database, environment ...string) (*program, error) {
	file, err := l.projectionFile(s.files)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(s.projector, "run") //nolint:gosec,noctx // the operator's binary; it is stopped by signal
	cmd.Env = append(os.Environ(),
		"KAFKA_BROKERS="+strings.Join(l.broker.addrs, ","), "KAFKA_TOPIC="+l.topic(), "KAFKA_GROUP="+group,
		"PROJECTION="+cmp.Or(l.projection, readmodel.BalanceName),
		"DATABASE_URL="+d.url, "LISTEN_ADDR=127.0.0.1:0", "LOG_FORMAT=json", fmt.Sprintf("MEMORY_LIMIT=%dMiB", cmp.Or(l.memory, memoryLimit)))
	if file != "" {
		cmd.Env = append(cmd.Env, "PROJECTION_FILE="+file)
	}
	cmd.Env = append(cmd.Env, environment...)
	p := &program{began: &beginning{}}
	p.Program, err = devstack.StartProgram(cmd, p.began)
	return p, err
}

// alive returns an error if the program has ended by itself. The error of stop then says why.
func (p *program) alive() error {
	select {
	case <-p.Ended():
		return errors.New("the projector ended too early")
	default:
		return nil
	}
}

// stop ends the program by SIGTERM and returns how long the program took to end.
func (p *program) stop() (time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	start := time.Now()
	if err := p.Stop(ctx); err != nil {
		return 0, fmt.Errorf("the projector: %w", err)
	}
	return time.Since(start), nil
}

// catchUp measures the projector while it projects a whole topic.
func (s *stack) catchUp(ctx context.Context, l *loaded, d database, group string, m *meter) (Run, error) {
	return s.observed(ctx, l, d, group, m, func(w *watcher) (run Run, err error) {
		m.begin()
		start := time.Now()
		f, err := s.startFleet(l, group, d)
		if err != nil {
			return run, err
		}
		m.subjects = f.pids()
		t, err := follow(ctx, w, f, l.events)
		if err == nil {
			run = t.result(start, l.events)
			run.CPU, run.Disturbed = m.end()
			_, run.PeakMiB = f.memory()
		}
		if err == nil && l.replicas > 0 {
			run.Shares, run.Connections, err = f.account(ctx, w, l.events)
		}
		took, stopErr := f.stop()
		run.StopSeconds = took.Seconds()
		return run, errors.Join(err, stopErr)
	})
}

// observed calls measure, which runs the projector and stops it again. It adds to the run what
// PostgreSQL counted meanwhile, and what is wrong with the final state.
func (s *stack) observed(ctx context.Context, l *loaded, d database, group string, m *meter,
	measure func(*watcher) (Run, error),
) (run Run, err error) {
	w, err := watch(ctx, d, group, l.table())
	if err != nil {
		return run, err
	}
	defer w.close()
	before, err := s.usage(ctx, w)
	if err != nil {
		return run, err
	}
	m.watcher = w.pid()
	if run, err = measure(w); err != nil {
		return run, err
	}
	if err := s.count(ctx, &run, w, &before); err != nil {
		return run, err
	}
	run.Problem, err = w.check(ctx, l.fingerprint)
	return run, err
}

// follow observes the positions until all events are durable.
func follow(ctx context.Context, w *watcher, f fleet, events int) (*trace, error) {
	t := &trace{}
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for i := 0; ; i++ {
		n, err := w.durable(ctx)
		if err != nil {
			return nil, err
		}
		if i%memoryEvery == 0 || n >= events {
			t.resident, _ = f.memory()
		}
		t.add(time.Now(), n)
		switch {
		case n >= events:
			return t, nil
		case time.Since(t.moved()) > stuckAfter:
			return nil, fmt.Errorf("%d of %d events durable and no more for %s: %s", n, events, stuckAfter, f)
		}
		if err := f.alive(); err != nil {
			return nil, err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
