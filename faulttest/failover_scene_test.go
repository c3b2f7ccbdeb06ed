//go:build faults && failover

package faulttest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"projector/e2e/wait"
	"projector/faulttest/pgproxy"
	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
	"projector/internal/testbank"
)

// failover is a scene on a PostgreSQL cluster that Patroni manages.
type failover struct {
	s           *scene
	synchronous bool
	cluster     *devstack.Patroni
	ways        map[devstack.Way]*pgproxy.Proxy
	targets     map[devstack.Way]string // the server that each proxy forwards to
	writers     *writers
	feeds       []*feed
	changed     int // how often the leader changed
	readAgain   int // records that were read again because the new leader lacks their commits
}

// newFailover starts the stream and one replica for each way to connect to PostgreSQL.
func newFailover(t *testing.T, kafka devtest.Cluster, synchronous bool) *failover {
	t.Helper()
	f := &failover{synchronous: synchronous, ways: map[devstack.Way]*pgproxy.Proxy{}, targets: map[devstack.Way]string{}}
	lasts := time.Duration(scaled(240, 80)) * time.Second
	wrong := int(lasts.Seconds()) * wrongPerSecond
	f.s = newScene(t, kafka, setting{
		database: f.startPatroni, partitions: 6, records: int(lasts.Seconds())*perSecond - wrong, during: lasts, clean: true,
	})
	s := f.s
	s.uncounted = !synchronous
	s.startWatch()
	direct := s.url + "&idle_in_transaction_session_timeout=3000&lock_timeout=1000"
	for _, through := range []string{direct, f.haproxy(), f.pgbouncer()} {
		s.through = through
		s.launch("")
	}
	s.await("each replica has partitions", s.owned(3))
	s.startFeed()
	mixed := testbank.Generate(testbank.Options{
		Seed: s.seed, Records: wrong, Partitions: s.setting.partitions, Accounts: wrong / 50, Prefix: "wrong-",
	})
	f.feeds = []*feed{s.feed, s.feedMore(mixed, chunkOf(mixed, lasts))}
	return f
}

// startPatroni starts the scene's database.
func (f *failover) startPatroni(s *scene) {
	f.s = s
	cluster, err := devstack.StartPatroni(s.t.Context(), devstack.PatroniOptions{
		Synchronous: f.synchronous, TempRoot: devtest.MemoryFolder(), Between: f.proxyBetween, Log: patroniLog(),
	})
	check(s.t, err)
	f.cluster = cluster
	s.t.Cleanup(func() { check(s.t, cluster.Close(context.Background())) })
	const name = "bank"
	check(s.t, devstack.CreateDatabase(s.t.Context(), cluster.URL("postgres"), name, ""))
	// The database must be on each node. A client that searches the hosts for the primary stops
	// with an error at a host that does not have the database.
	for _, node := range cluster.Nodes() {
		wait.Until(s.t, patient, "the database is on each node", func() string {
			conn, err := pgx.Connect(s.t.Context(), node.URL(name))
			if err != nil {
				return err.Error()
			}
			check(s.t, conn.Close(s.t.Context()))
			return ""
		})
	}
	devtest.Schema(s.t, cluster.URL(name))
	s.use(cluster.URL(name))
	s.audit()
	f.writers = watchWriters(s.t, cluster)
}

// proxyBetween puts a proxy into a connection between two servers, so that the test can cut it.
func (f *failover) proxyBetween(way devstack.Way, addr string) (string, error) {
	proxy, err := pgproxy.ListenRaw(addr)
	if err != nil {
		return "", err
	}
	f.ways[way], f.targets[way] = proxy, addr
	f.s.t.Cleanup(func() { _ = proxy.Close() })
	return proxy.Addr(), nil
}

// haproxy returns the database's URL through an HAProxy.
func (f *failover) haproxy() string {
	s := f.s
	s.t.Helper()
	door := must(f.cluster.HAProxy(s.t.Context()))(s.t)
	s.t.Cleanup(func() { _ = door.Close(context.Background()) })
	u := must(url.Parse(s.url))(s.t)
	u.Host, u.RawQuery = door.Addr(), "sslmode=disable"
	return u.String()
}

// pgbouncer returns the database's URL through a PgBouncer that connects through HAProxy.
func (f *failover) pgbouncer() string {
	s := f.s
	s.t.Helper()
	door, through, err := devstack.PgBouncer(s.t.Context(), f.haproxy(), 4)
	check(s.t, err)
	s.t.Cleanup(func() { _ = door.Close(context.Background()) })
	return through
}

// queryContext returns a context with a time limit for one query, because the database may not
// answer.
func (s *scene) queryContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(s.t.Context(), 2*time.Second)
}

// readAgainCount returns how many records the replicas read again because the new leader lacks some
// commits. It reads the number from their logs.
func (f *failover) readAgainCount() (records int) {
	for _, r := range f.s.replicas {
		for _, line := range r.Lines() {
			var entry struct {
				Msg      string
				From, To int
			}
			if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "the position was taken back" {
				records += entry.From - entry.To
			}
		}
	}
	return records
}

// writers polls which nodes accept writes.
type writers struct {
	nodes []*devstack.PatroniNode
	conns []*pgx.Conn // nil means not connected

	mu    sync.Mutex // guards what follows
	now   []bool
	both  int // polls in which both nodes accepted writes
	polls int
}

const (
	writersEvery = 20 * time.Millisecond
	writerWithin = 500 * time.Millisecond
)

// watchWriters starts the polling.
func watchWriters(t testing.TB, cluster *devstack.Patroni) *writers {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	nodes := cluster.Nodes()
	w := &writers{nodes: nodes, conns: make([]*pgx.Conn, len(nodes)), now: make([]bool, len(nodes))}
	var ended sync.WaitGroup
	ended.Go(func() {
		tick := time.NewTicker(writersEvery)
		defer tick.Stop()
		for ctx.Err() == nil {
			w.poll(ctx)
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	t.Cleanup(func() {
		stop()
		ended.Wait()
		for i := range w.conns {
			w.hangUp(i)
		}
	})
	return w
}

// poll queries the first node, the second node, and the first node again. If the first node
// accepted writes both times, it also accepted writes during the query of the second node.
func (w *writers) poll(ctx context.Context) {
	first := w.asks(ctx, 0)
	second := w.asks(ctx, 1)
	both := first && second && w.asks(ctx, 0)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now[0], w.now[1] = first, second
	w.polls++
	if both {
		w.both++
	}
}

// The method asks reports whether a node accepts writes.
func (w *writers) asks(ctx context.Context, i int) (yes bool) {
	ctx, cancel := context.WithTimeout(ctx, writerWithin)
	defer cancel()
	var err error
	if w.conns[i] == nil {
		w.conns[i], err = pgx.Connect(ctx, w.nodes[i].URL("postgres"))
	}
	if err == nil {
		err = w.conns[i].QueryRow(ctx, "SELECT NOT pg_is_in_recovery()").Scan(&yes)
	}
	if err != nil {
		w.hangUp(i)
	}
	return yes && err == nil
}

func (w *writers) hangUp(i int) {
	if w.conns[i] != nil {
		ctx, cancel := context.WithTimeout(context.Background(), writerWithin)
		defer cancel()
		_ = w.conns[i].Close(ctx)
	}
	w.conns[i] = nil
}

// The method writes returns a check for await. It succeeds when the node accepts writes.
func (w *writers) writes(node *devstack.PatroniNode) func() string {
	return func() string {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.now[node.Number()-1] {
			return fmt.Sprintf("which nodes take writes: %t", w.now)
		}
		return ""
	}
}

// report fails the test if two nodes accepted writes at the same time, or if there was no poll.
func (w *writers) report(t testing.TB) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	t.Logf("%d looks at which nodes take writes", w.polls)
	if w.both > 0 || w.polls == 0 {
		t.Errorf("at %d of %d looks both nodes took writes", w.both, w.polls)
	}
}

// patroniLog returns a file for the output of Patroni and etcd, or nil. The output helps to find
// out why a test fails.
func patroniLog() io.Writer {
	path := os.Getenv("PROJECTOR_FAILOVER_LOG")
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	return file
}
