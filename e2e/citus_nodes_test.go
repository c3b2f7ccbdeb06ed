//go:build citus

package e2e_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"projector/internal/devstack"
	"projector/internal/testbank"
	"projector/projection"
	"projector/readmodel"
)

// TestCitusNodesAreKilled kills a node with SIGKILL in the middle of a two-phase commit. It also
// kills the instance that commits. A second instance then takes over the partitions of the killed
// instance. To hold the commit at that moment, one node waits for a synchronous standby that does
// not exist. If this node is a worker, it waits in its PREPARE TRANSACTION. If this node is the
// coordinator, it waits between its own COMMIT and the COMMIT PREPARED of the workers.
//
// All nodes must run on this machine, read their settings from their data folder, and accept the
// user of TEST_CITUS_URL as superuser.
func TestCitusNodesAreKilled(t *testing.T) {
	for _, held := range []string{coordinator, worker} {
		for _, killed := range []string{coordinator, worker} {
			t.Run(fmt.Sprintf("held at the %s, %s killed", held, killed), func(t *testing.T) { killNode(t, held, killed) })
		}
	}
}

const (
	coordinator = "coordinator"
	worker      = "worker"
)

// The function distributed returns a test environment on Citus with distributed tables.
func distributed(t *testing.T, partitions int32) *world {
	t.Helper()
	w := onCitus(t, partitions)
	for _, args := range [][]string{{"migrate"}, {"migrate", "--citus"}} {
		if status, _, stderr := once(t, []string{"DATABASE_URL=" + w.url}, args...); status != 0 {
			t.Fatalf("%v: exit %d: %s", args, status, stderr)
		}
	}
	return w
}

func killNode(t *testing.T, held, killed string) {
	t.Helper()
	w := distributed(t, 4)
	nodes := citusNodes(t, w)
	total := scaled(10_000)
	records := testbank.Generate(testbank.Options{Seed: seed(t), Records: total, Partitions: w.partitions, Accounts: 500})
	finish := w.feed(records, total/200, 50*time.Millisecond)
	a := w.start()
	await(t, "some work", w.passed(int64(total/5)))

	nodes[held].holdCommits(t)
	await(t, "a commit that is held", func() string {
		if n := nodes[held].count(t, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"); n == 0 {
			return "none"
		}
		return ""
	})
	if n := nodes[worker].count(t, "SELECT count(*) FROM pg_prepared_xacts WHERE gid LIKE 'citus%'"); n == 0 {
		t.Error("nothing is prepared on the worker")
	}
	nodes[held].forget(t)
	a.kill()
	nodes[killed].kill(t)
	w.evict()
	b := w.start()
	if killed != held {
		nodes[held].reload(t)
	}
	finish()
	nodes[killed].start(t)
	w.db.Reset()
	w.exact(w.oracle(), repeated)
	b.terminate()
	w.atRest()
}

// citusNode is one PostgreSQL server of the Citus cluster, on this machine.
type citusNode struct {
	dir string
	url string
}

// citusNodes returns the coordinator and one worker.
func citusNodes(t *testing.T, w *world) map[string]*citusNode {
	t.Helper()
	rows, err := w.db.Query(t.Context(), `
		SELECT CASE WHEN n.groupid = 0 THEN 'coordinator' ELSE 'worker' END, n.nodename, n.nodeport, r.result
		FROM run_command_on_all_nodes('SELECT setting FROM pg_settings WHERE name = ''data_directory''') r
		JOIN pg_dist_node n USING (nodeid)
		WHERE r.success`)
	if err != nil {
		t.Fatal(err)
	}
	nodes := map[string]*citusNode{}
	var (
		role, host, dir string
		port            int
	)
	_, err = pgx.ForEachRow(rows, []any{&role, &host, &port, &dir}, func() error {
		u, err := url.Parse(os.Getenv("TEST_CITUS_URL"))
		if err != nil {
			return err
		}
		u.Host = net.JoinHostPort(host, strconv.Itoa(port))
		nodes[role] = &citusNode{dir: dir, url: u.String()}
		return nil
	})
	if err != nil || len(nodes) != 2 {
		t.Fatalf("the cluster needs a coordinator, which citus_set_coordinator_host has named, and a worker: %v", err)
	}
	for _, n := range nodes {
		t.Cleanup(func() { n.forget(t); n.reload(t) })
	}
	return nodes
}

// The method do connects to this node and calls fn with the connection.
func (n *citusNode) do(t *testing.T, fn func(context.Context, *pgx.Conn) error) {
	t.Helper()
	ctx := context.Background() // cleanups call do after the test's context has ended
	conn, err := pgx.Connect(ctx, n.url)
	if err == nil {
		err = fn(ctx, conn)
		_ = conn.Close(ctx)
	}
	if err != nil {
		t.Errorf("node in %s: %v", n.dir, err)
	}
}

func (n *citusNode) exec(t *testing.T, statement string) {
	t.Helper()
	n.do(t, func(ctx context.Context, conn *pgx.Conn) error { _, err := conn.Exec(ctx, statement); return err })
}

func (n *citusNode) count(t *testing.T, query string) (count int) {
	t.Helper()
	n.do(t, func(ctx context.Context, conn *pgx.Conn) error { return conn.QueryRow(ctx, query).Scan(&count) })
	return count
}

// holdCommits makes each later COMMIT and PREPARE on the node wait.
func (n *citusNode) holdCommits(t *testing.T) {
	t.Helper()
	n.exec(t, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
	n.reload(t)
}

// forget removes the setting that holdCommits has made. The removal takes effect at the next reload
// or start of the node.
func (n *citusNode) forget(t *testing.T) {
	t.Helper()
	n.exec(t, "ALTER SYSTEM RESET synchronous_standby_names")
}

func (n *citusNode) reload(t *testing.T) {
	t.Helper()
	n.exec(t, "SELECT pg_reload_conf()")
}

// kill sends SIGKILL to all processes of the node at once, so that no process can react to the end
// of another process.
func (n *citusNode) kill(t *testing.T) {
	t.Helper()
	postmaster := devstack.PostmasterOf(n.dir)
	if postmaster == 0 {
		t.Fatalf("no server runs in %s", n.dir)
	}
	signal(t, []int{postmaster}, syscall.SIGSTOP)
	signal(t, family(postmaster)[1:], syscall.SIGKILL)
	signal(t, []int{postmaster}, syscall.SIGKILL)
}

// start restarts a killed node as the system user that owns the node's data folder.
func (n *citusNode) start(t *testing.T) {
	t.Helper()
	opts, err := os.ReadFile(filepath.Join(n.dir, "postmaster.opts"))
	if err != nil {
		t.Fatal(err)
	}
	program, _, _ := strings.Cut(string(opts), " ")
	info, err := os.Stat(n.dir)
	if err != nil {
		t.Fatal(err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		t.Fatalf("%s: nobody owns it", n.dir)
	}
	await(t, "the node starts", func() string {
		cmd := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(program), "pg_ctl"),
			"start", "-w", "-D", n.dir, "-l", filepath.Join(n.dir, "restarted.log"))
		cmd.Dir = n.dir
		cmd.Env = append(os.Environ(), "HOME="+n.dir) // libpq looks for certificates in HOME
		if os.Geteuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}}
		}
		if output, err := cmd.CombinedOutput(); err != nil {
			return string(output)
		}
		return ""
	})
}

// TestAClaimWaitsForWhatIsPrepared prepares a transaction on a worker, as Citus does before the
// coordinator commits it. An instance must not finish its claim of a partition before that
// transaction is committed.
func TestAClaimWaitsForWhatIsPrepared(t *testing.T) {
	w := distributed(t, 1)
	pool, err := readmodel.OpenPool(t.Context(), w.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	const prepared = "'citus_77_1_1_1'" // no node has this number, so Citus never recovers it
	n := citusNodes(t, w)[worker]
	n.exec(t, "BEGIN; PREPARE TRANSACTION "+prepared)
	claimed := make(chan error, 1)
	go func() {
		_, err := readmodel.ClaimPosition(t.Context(), pool, readmodel.Partition{Group: w.group, Topic: w.topic},
			projection.Claim{Owner: "test", TopicID: "id", Committed: projection.NoOffset})
		claimed <- err
	}()
	await(t, "the claim is made", w.counts("SELECT count(*) FROM projector_position WHERE consumer_group = '"+w.group+"'", 1))
	early := len(claimed) > 0
	n.exec(t, "COMMIT PREPARED "+prepared)
	if err := <-claimed; err != nil || early {
		t.Fatalf("the claim has returned while a transaction was prepared: %t, error %v", early, err)
	}
}
