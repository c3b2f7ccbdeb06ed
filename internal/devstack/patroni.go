package devstack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// PatroniOptions configures a Patroni cluster. The zero value is valid.
type PatroniOptions struct {
	// Synchronous makes each commit wait for the standby.
	Synchronous bool
	// TempRoot is the parent of the temporary folder. Empty means the system's temporary folder.
	TempRoot string
	// Between, if not nil, is called for each network path between two servers. addr is the address
	// at the end of the path. Between returns the address to use instead, for example the address
	// of a proxy.
	Between func(way Way, addr string) (string, error)
	// Log receives the servers' output. Nil discards it.
	Log io.Writer
}

// Way is a network path between two servers of a Patroni cluster.
type Way struct {
	Node int // from 1
	// ToEtcd is true for the path from the node to etcd. Otherwise it is the path that the other
	// node uses for replication from this node's PostgreSQL.
	ToEtcd bool
}

// patroniPrograms are the programs that StartPatroni needs in addition to PostgreSQL.
var patroniPrograms = []string{"patroni", "patronictl", "etcd"}

// Patroni is a PostgreSQL cluster of two nodes. Patroni elects one as the leader and elects the
// other when the leader fails. Its etcd has one node. Patroni works on Linux only.
type Patroni struct {
	dir         string
	binaries    string
	account     *account
	password    string
	synchronous bool
	between     func(Way, string) (string, error)
	log         io.Writer

	etcd     *process
	etcdAddr string
	nodes    []*PatroniNode
}

// PatroniNode is a Patroni process with its PostgreSQL.
type PatroniNode struct {
	number int
	of     *Patroni
	dir    string
	addr   string // of PostgreSQL
	rest   string // of Patroni
	daemon *process
}

// StartPatroni creates a cluster and returns when one node is the leader and the second node
// follows it. ctx limits the start only. Close ends the cluster.
func StartPatroni(ctx context.Context, options PatroniOptions) (*Patroni, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	p, err := newPatroni(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("start Patroni: %w", err)
	}
	if err := p.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start Patroni: %w", err), p.Close(ctx))
	}
	return p, nil
}

func newPatroni(ctx context.Context, options PatroniOptions) (*Patroni, error) {
	for _, name := range patroniPrograms {
		if _, err := exec.LookPath(name); err != nil {
			return nil, fmt.Errorf("%s not found: install the packages patroni, python3-etcd and etcd-server", name)
		}
	}
	binaries, err := postgresBinaries(ctx)
	if err != nil {
		return nil, err
	}
	runsAs, err := serverAccount()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(options.TempRoot, "projector-patroni-")
	if err != nil {
		return nil, err
	}
	p := &Patroni{
		dir: dir, binaries: binaries, account: runsAs, password: randomName(), synchronous: options.Synchronous,
		between: options.Between, log: serverLog(options.Log),
	}
	if p.between == nil {
		p.between = func(_ Way, addr string) (string, error) { return addr, nil }
	}
	return p, nil
}

func (p *Patroni) start(ctx context.Context) error {
	if err := p.account.own(p.dir); err != nil {
		return err
	}
	ports, err := freePorts(6)
	if err != nil {
		return err
	}
	if err := p.startEtcd(ctx, address(ports[0]), address(ports[1])); err != nil {
		return err
	}
	for i, of := range [][]int{ports[2:4], ports[4:6]} {
		number := i + 1
		node := &PatroniNode{
			number: number, of: p, dir: filepath.Join(p.dir, "node"+strconv.Itoa(number)), addr: address(of[0]), rest: address(of[1]),
		}
		p.nodes = append(p.nodes, node)
		if err := node.configure(); err != nil {
			return err
		}
		if err := node.Start(); err != nil {
			return err
		}
	}
	return p.nodes[0].daemon.await(ctx, p.Whole)
}

func (p *Patroni) startEtcd(ctx context.Context, client, peer string) (err error) {
	p.etcdAddr = client
	p.etcd, err = p.run("etcd", "--name=etcd", "--data-dir="+filepath.Join(p.dir, "etcd"), "--logger=zap", "--log-level=warn",
		"--listen-client-urls=http://"+client, "--advertise-client-urls=http://"+client,
		"--listen-peer-urls=http://"+peer, "--initial-advertise-peer-urls=http://"+peer, "--initial-cluster=etcd=http://"+peer)
	if err != nil {
		return err
	}
	return p.etcd.await(ctx, func(ctx context.Context) error { return expectOK(ctx, "http://"+client+"/health") })
}

// run starts a program as PostgreSQL's user.
func (p *Patroni) run(name string, args ...string) (*process, error) {
	return startProcess(p.command(context.Background(), name, args...), syscall.SIGTERM, p.log)
}

func (p *Patroni) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "HOME="+p.dir, "LC_ALL=C.UTF-8", "TZ=UTC")
	cmd.SysProcAttr = p.account.attributes()
	return cmd
}

func expectOK(ctx context.Context, page string) error {
	response, err := get(ctx, page)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", page, response.Status)
	}
	return errors.Join(err, response.Body.Close())
}

// Nodes returns all nodes of the cluster.
func (p *Patroni) Nodes() []*PatroniNode { return p.nodes }

// Leader returns the node that holds the leader key and reports itself as leader, or nil.
func (p *Patroni) Leader(ctx context.Context) *PatroniNode {
	for _, node := range p.nodes {
		if expectOK(ctx, "http://"+node.rest+"/primary") == nil {
			return node
		}
	}
	return nil
}

// Other returns the node of the cluster that is not the given node.
func (p *Patroni) Other(node *PatroniNode) *PatroniNode {
	if node == p.nodes[0] {
		return p.nodes[1]
	}
	return p.nodes[0]
}

// Whole returns nil if there is a leader and a standby that follows it. With Synchronous, the
// leader must also wait for the standby. Otherwise the error says what is missing.
func (p *Patroni) Whole(ctx context.Context) error {
	leader := p.Leader(ctx)
	if leader == nil {
		return errors.New("no node leads")
	}
	response, err := get(ctx, "http://"+leader.rest+"/cluster")
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	var cluster struct {
		Members []struct {
			Name, Role, State string
			Timeline          int
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&cluster); err != nil {
		return fmt.Errorf("%s: %w", response.Request.URL, err)
	}
	follows := map[string]bool{"replica": !p.synchronous, "sync_standby": true}
	timelines := map[int]bool{}
	for _, m := range cluster.Members {
		switch running := m.State == "running" || m.State == "streaming"; {
		case running && m.Role == "leader", running && follows[m.Role]:
			timelines[m.Timeline] = true
		default:
			return fmt.Errorf("%s is %s, %s", m.Name, m.Role, m.State)
		}
	}
	if len(cluster.Members) != len(p.nodes) || len(timelines) != 1 {
		return fmt.Errorf("members %+v", cluster.Members)
	}
	return nil
}

// Switchover uses patronictl to make the other node the leader.
func (p *Patroni) Switchover(ctx context.Context) error {
	leader := p.Leader(ctx)
	if leader == nil {
		return errors.New("switchover: no node leads")
	}
	output, err := p.command(ctx, "patronictl", "-c", leader.config(), "switchover",
		"--leader", leader.name(), "--candidate", p.Other(leader).name(), "--force", clusterName).CombinedOutput()
	if err != nil {
		return fmt.Errorf("patronictl switchover: %w: %s", err, output)
	}
	return nil
}

// URL returns the URL of a database for the superuser. It leads to the node that accepts writes. It
// contains the password.
func (p *Patroni) URL(database string) string {
	hosts := make([]string, len(p.nodes))
	for i, node := range p.nodes {
		hosts[i] = node.addr
	}
	return p.url(strings.Join(hosts, ","), database, "&target_session_attrs=read-write")
}

func (p *Patroni) url(host, database, more string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(superuser, p.password),
		Host: host, Path: "/" + database, RawQuery: "sslmode=disable" + more,
	}
	return u.String()
}

// Close ends all servers and removes their folder.
func (p *Patroni) Close(ctx context.Context) error {
	var err error
	for _, node := range p.nodes {
		node.daemon.kill()
		err = errors.Join(err, node.endPostgres(ctx))
	}
	if p.etcd != nil {
		p.etcd.kill()
	}
	return errors.Join(err, os.RemoveAll(p.dir))
}

// Start starts a node's Patroni and returns at once. Patroni then starts or repairs the node's
// PostgreSQL. Patroni.Whole checks whether all nodes of the cluster run and one follows the other.
func (n *PatroniNode) Start() (err error) {
	n.daemon, err = n.of.run("patroni", n.config())
	return err
}

// Number is the node's number, from 1.
func (n *PatroniNode) Number() int { return n.number }

// URL returns the URL of a database on this node, which need not be the leader. It contains the
// password.
func (n *PatroniNode) URL(database string) string { return n.of.url(n.addr, database, "") }

// Daemon returns the process id of the node's Patroni, or 0 if it has ended.
func (n *PatroniNode) Daemon() int { return n.daemon.pid() }

// Postmaster returns the process id of the node's PostgreSQL, or 0 if it does not run.
func (n *PatroniNode) Postmaster() int { return PostmasterOf(n.data()) }

// PostmasterOf returns the process id of the PostgreSQL that uses the data folder, or 0 if none
// runs.
func PostmasterOf(data string) int {
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		return 0
	}
	// The pid file remains after a crash, and another process may have this id now.
	command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || !strings.Contains(string(command), data) {
		return 0
	}
	return pid
}

// endPostgres ends the node's PostgreSQL at once. PostgreSQL does not end together with its
// Patroni.
func (n *PatroniNode) endPostgres(ctx context.Context) error {
	tick := time.NewTicker(readyInterval)
	defer tick.Stop()
	for pid := n.Postmaster(); pid != 0; pid = n.Postmaster() {
		_ = syscall.Kill(pid, syscall.SIGQUIT)
		_ = syscall.Kill(pid, syscall.SIGCONT)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: PostgreSQL does not end: %w", n.name(), ctx.Err())
		}
	}
	return nil
}
