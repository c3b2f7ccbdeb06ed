package devstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// PostgresOptions configures a PostgreSQL cluster. The zero value is valid.
type PostgresOptions struct {
	// TempRoot is the parent of the cluster's folder. Empty means the system's temporary folder.
	TempRoot string
	// Settings are server parameters. They are added to the defaults or replace them.
	Settings map[string]string
	// Certificate, if not nil, makes the server accept TLS connections too.
	Certificate *Certificate
	// FastLogin makes a client hash the password once at a login, and not 4,096 times. Some clients
	// for Java refuse such a server.
	FastLogin bool
	// Log receives the server's output. Nil discards it.
	Log io.Writer
}

// StopMode is how PostgreSQL shuts down.
type StopMode int

const (
	// Fast ends the sessions, writes a checkpoint and ends the server.
	Fast StopMode = iota
	// Immediate ends the server without a checkpoint, like a crash. The next start replays the
	// write-ahead log.
	Immediate
)

func (m StopMode) signal() syscall.Signal {
	if m == Immediate {
		return syscall.SIGQUIT
	}
	return syscall.SIGINT
}

const superuser = "postgres"

// Postgres is a separate PostgreSQL cluster. After a stop it can start again with the same port and
// data. It is safe for concurrent use.
type Postgres struct {
	server
	dir      string // holds the data folder and the password
	binaries string
	account  *account
	settings map[string]string
	log      io.Writer
	// certificate is nil without TLS.
	certificate *Certificate
	password    string
	fastLogin   bool
}

// StartPostgres creates a cluster and returns when the server accepts connections. ctx limits the
// start only. Close ends the cluster.
func StartPostgres(ctx context.Context, options PostgresOptions) (*Postgres, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	p, err := newPostgres(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	err = p.makeFolders()
	if err == nil {
		err = p.createData(ctx)
	}
	if err == nil && p.certificate != nil {
		err = p.installCertificate(*p.certificate)
	}
	if err == nil {
		err = retryStart(ctx, p.startOnNewPort)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start PostgreSQL: %w", err), p.Close(ctx))
	}
	return p, nil
}

func newPostgres(ctx context.Context, options PostgresOptions) (*Postgres, error) {
	binaries, err := postgresBinaries(ctx)
	if err != nil {
		return nil, err
	}
	account, err := serverAccount()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(options.TempRoot, "projector-postgres-")
	if err != nil {
		return nil, err
	}
	return &Postgres{
		dir: dir, binaries: binaries, account: account, settings: postgresSettings(options.Settings),
		log: serverLog(options.Log), certificate: options.Certificate, password: randomName(),
		fastLogin: options.FastLogin,
	}, nil
}

func (p *Postgres) startOnNewPort(ctx context.Context) error {
	if err := p.choosePort(); err != nil {
		return err
	}
	return p.Start(ctx)
}

// Start starts a stopped cluster with its old port and data. It returns when the server accepts
// connections. It does nothing if the cluster already runs.
func (p *Postgres) Start(ctx context.Context) error {
	return p.start(ctx, func() (*process, error) {
		started, err := startProcess(p.command(context.Background(), "postgres", p.serverArgs()...), syscall.SIGINT, p.log)
		return started, p.account.explain(err, p.program("postgres"), p.dir)
	}, func(ctx context.Context, started *process) error { return started.await(ctx, p.acceptsConnections) })
}

// acceptsConnections returns nil if the server accepts connections. It logs in with this cluster's
// own password. If another server has taken the port, the login fails, because that server has
// another password.
func (p *Postgres) acceptsConnections(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, p.URL())
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// Stop shuts the server down and leaves its data for Start. If ctx ends first, the server is killed
// and Stop returns an error.
func (p *Postgres) Stop(ctx context.Context, mode StopMode) error {
	if err := p.stop(ctx, mode.signal()); err != nil {
		return fmt.Errorf("stop PostgreSQL: %w", err)
	}
	return nil
}

// Close stops the server and removes its data folder.
func (p *Postgres) Close(ctx context.Context) error {
	return errors.Join(p.Stop(ctx, Immediate), os.RemoveAll(p.dir))
}

// PID returns the process id of the postmaster, or 0 if the cluster is stopped.
func (p *Postgres) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.process.pid()
}

// URL returns the URL of the database postgres for the superuser. It contains the password.
func (p *Postgres) URL() string { return p.DatabaseURL("postgres") }

// DatabaseURL returns the URL of a database for the superuser. It contains the password.
func (p *Postgres) DatabaseURL(name string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(superuser, p.password),
		Host: address(p.port), Path: "/" + name, RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Addr returns the server's address, host:port.
func (p *Postgres) Addr() string { return address(p.port) }

// NewDatabase creates a database with a unique name, as a copy of the named template, and returns
// its URL. The template "" means PostgreSQL's default template.
func (p *Postgres) NewDatabase(ctx context.Context, template string) (string, error) {
	name := "db_" + randomName()
	if err := CreateDatabase(ctx, p.URL(), name, template); err != nil {
		return "", err
	}
	return p.DatabaseURL(name), nil
}

func (p *Postgres) program(name string) string { return filepath.Join(p.binaries, name) }

// command runs one of PostgreSQL's programs as the cluster's owner. It runs in a folder that this
// user can enter, and its messages are in English.
func (p *Postgres) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return p.run(ctx, p.program(name), args...)
}

// run runs a program as the cluster's owner, as command does.
func (p *Postgres) run(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	cmd.SysProcAttr = p.account.attributes()
	return cmd
}

// CreateDatabase creates a database on the server at adminURL, as a copy of the named template. The
// template "" means PostgreSQL's default template. No session may be connected to the template
// during the copy.
func CreateDatabase(ctx context.Context, adminURL, name, template string) error {
	if err := execute(ctx, adminURL, CreateStatement(name, template)); err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	return nil
}

// CreateStatement returns the SQL of CreateDatabase.
func CreateStatement(name, template string) string {
	statement := "CREATE DATABASE " + quoted(name)
	if template != "" {
		statement += " TEMPLATE " + quoted(template)
	}
	return statement
}

// DropDatabase drops a database from the server at adminURL and ends the sessions that use it. It
// is no error if the database does not exist.
func DropDatabase(ctx context.Context, adminURL, name string) error {
	if err := execute(ctx, adminURL, DropStatement(name)); err != nil {
		return fmt.Errorf("drop database %s: %w", name, err)
	}
	return nil
}

// DropStatement returns the SQL of DropDatabase.
func DropStatement(name string) string {
	return "DROP DATABASE IF EXISTS " + quoted(name) + " WITH (FORCE)"
}

// WithDatabase returns databaseURL with another database name.
func WithDatabase(databaseURL, name string) (string, error) {
	u, err := url.Parse(databaseURL)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		// The parser's error quotes its input, which contains a password.
		return "", errors.New("not a database URL: it must look like postgres://user@host:port/database")
	}
	u.Path = "/" + name
	return u.String(), nil
}

func execute(ctx context.Context, databaseURL, statement string) error {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement)
	return errors.Join(err, conn.Close(ctx))
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }
