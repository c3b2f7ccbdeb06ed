package devstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// Door is a proxy for PostgreSQL: HAProxy or PgBouncer.
type Door struct {
	addr   string
	dir    string
	server *process
}

// Addr is the address (host:port) on which the proxy listens.
func (d *Door) Addr() string { return d.addr }

// Close ends the proxy and all its connections.
func (d *Door) Close(context.Context) error {
	d.server.kill()
	return os.RemoveAll(d.dir)
}

// HAProxy starts an HAProxy. It forwards connections to the node that Patroni reports as the
// leader. When a node is no longer the leader, HAProxy closes the connections to it.
func (p *Patroni) HAProxy(ctx context.Context) (*Door, error) {
	servers := ""
	for _, node := range p.nodes {
		_, port, _ := net.SplitHostPort(node.rest)
		servers += fmt.Sprintf("    server %s %s check port %s\n", node.name(), node.addr, port)
	}
	// Until its first check, HAProxy treats all nodes as leaders and uses them in turn.
	ready := func(ctx context.Context, addr string) error {
		for range p.nodes {
			conn, err := pgx.Connect(ctx, p.url(addr, "postgres", "&target_session_attrs=read-write"))
			if err != nil {
				return err
			}
			if err := conn.Close(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	return openDoor(ctx, "haproxy", func(host, port string) string {
		return fmt.Sprintf(haproxyConfig, net.JoinHostPort(host, port), servers)
	}, ready, "-db", "-f")
}

const haproxyConfig = `global
    maxconn 200
defaults
    mode tcp
    timeout connect 2s
    timeout client 30m
    timeout server 30m
    timeout check 2s
listen postgres
    bind %s
    option httpchk OPTIONS /primary
    http-check expect status 200
    default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
%s`

// pooledSettings are the settings that the projector sends when it connects. PgBouncer does not
// forward them, so they are set for the database (see docs/postgres.md).
var pooledSettings = map[string]string{
	"idle_in_transaction_session_timeout": "20s", "lock_timeout": "5s", "statement_timeout": "60s",
	"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off",
}

// PgBouncer starts a PgBouncer in transaction mode for the database at a URL. PgBouncer opens at
// most the given number of connections to the database. The function returns the URL of the
// database through PgBouncer.
func PgBouncer(ctx context.Context, databaseURL string, connections int) (*Door, string, error) {
	server, err := url.Parse(databaseURL)
	if err != nil {
		return nil, "", errors.New("start PgBouncer: the database's URL cannot be read") // the parser's error would quote the password
	}
	name := strings.TrimPrefix(server.Path, "/")
	secret, _ := server.User.Password()
	settings := slices.Sorted(maps.Keys(pooledSettings))
	for _, setting := range settings {
		if err := execute(ctx, databaseURL, fmt.Sprintf("ALTER DATABASE %s SET %s = '%s'", quoted(name), setting, pooledSettings[setting])); err != nil {
			return nil, "", fmt.Errorf("start PgBouncer: %w", err)
		}
	}
	door, err := openDoor(ctx, "pgbouncer", func(host, port string) string {
		return fmt.Sprintf(pgbouncerConfig, name, server.Hostname(), server.Port(), name, server.User.Username(), secret,
			host, port, connections, strings.Join(settings, ","))
	}, listens, "-q")
	if err != nil {
		return nil, "", err
	}
	through := url.URL{
		Scheme: "postgres", User: url.UserPassword(server.User.Username(), secret), Host: door.addr, Path: "/" + name,
		RawQuery: "sslmode=disable&default_query_exec_mode=cache_describe",
	}
	return door, through.String(), nil
}

const pgbouncerConfig = `[databases]
%s = host=%s port=%s dbname=%s user=%s password=%s
[pgbouncer]
listen_addr = %s
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = %d
server_login_retry = 1
ignore_startup_parameters = %s
`

// openDoor starts a program as PostgreSQL's user and returns when it is ready. The last argument of
// the program is its configuration file.
func openDoor(
	ctx context.Context, program string, config func(host, port string) string, ready func(ctx context.Context, addr string) error, args ...string,
) (*Door, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, fmt.Errorf("%s not found: install the package %s", program, program)
	}
	runsAs, err := serverAccount()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "projector-"+program+"-")
	if err != nil {
		return nil, err
	}
	d := &Door{dir: dir}
	err = d.open(runsAs, path, config, args)
	if err == nil {
		err = d.server.await(ctx, func(ctx context.Context) error { return ready(ctx, d.addr) })
	}
	if err != nil {
		d.server.kill()
		return nil, errors.Join(fmt.Errorf("start %s: %w", program, err), os.RemoveAll(dir))
	}
	return d, nil
}

func (d *Door) open(runsAs *account, program string, config func(host, port string) string, args []string) error {
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	d.addr = address(ports[0])
	file := filepath.Join(d.dir, "config")
	if err := os.WriteFile(file, []byte(config(localhost, strconv.Itoa(ports[0]))), 0o600); err != nil {
		return err
	}
	for _, path := range []string{d.dir, file} {
		if err := runsAs.own(path); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(context.Background(), program, append(args, file)...)
	cmd.Dir = d.dir
	cmd.SysProcAttr = runsAs.attributes()
	d.server, err = startProcess(cmd, syscall.SIGKILL, io.Discard)
	return err
}

func listens(ctx context.Context, addr string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return conn.Close()
}
