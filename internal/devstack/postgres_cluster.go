package devstack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// postgresSettings joins the caller's server parameters to the defaults: small,
// but with fsync and full-page writes on, because durability is what is tested.
// Logs stay terse: PostgreSQL would put statements and rows, with their amounts,
// into messages about errors.
func postgresSettings(own map[string]string) map[string]string {
	settings := map[string]string{
		"max_connections":         "100",
		"shared_buffers":          "32MB",
		"max_wal_size":            "256MB",
		"log_error_verbosity":     "terse",
		"log_min_error_statement": "panic",
		"log_checkpoints":         "off",
		"timezone":                "UTC",
		"log_timezone":            "UTC",
	}
	maps.Copy(settings, own)
	return settings
}

func (p *Postgres) dataDir() string { return filepath.Join(p.dir, "data") }

// passwordFile is stored next to the data, for the next start.
func (p *Postgres) passwordFile() string { return filepath.Join(p.dir, "password") }

// serverArgs are the arguments of postgres. There is no Unix socket: its path
// would be too long in many temporary folders.
func (p *Postgres) serverArgs() []string {
	args := []string{
		"-D", p.dataDir(), "-p", strconv.Itoa(p.port),
		"-c", "listen_addresses=" + localhost, "-c", "unix_socket_directories=",
	}
	for _, name := range slices.Sorted(maps.Keys(p.settings)) {
		args = append(args, "-c", name+"="+p.settings[name])
	}
	return args
}

// prepare makes sure that the folder holds a cluster and that its password is
// known.
func (p *Postgres) prepare(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(p.dataDir(), "PG_VERSION")); err == nil {
		password, err := os.ReadFile(p.passwordFile())
		p.password = string(bytes.TrimSpace(password))
		return err
	}
	p.password = randomName()
	if err := p.makeFolders(); err != nil {
		return err
	}
	return p.initdb(ctx)
}

// makeFolders leaves the server's user what it must own: an empty data folder
// and the password. A temporary folder belongs to it as a whole, else the user
// could not enter it.
func (p *Postgres) makeFolders() error {
	if err := os.Mkdir(p.dataDir(), 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	if err := os.WriteFile(p.passwordFile(), []byte(p.password+"\n"), 0o600); err != nil {
		return err
	}
	owned := []string{p.dataDir(), p.passwordFile()}
	if p.temporary {
		owned = append(owned, p.dir)
	}
	for _, path := range owned {
		if err := p.account.own(path); err != nil {
			return err
		}
	}
	return nil
}

// initdb makes the cluster. Its files are not flushed one by one: what a crash
// of the machine would cost here is an empty cluster.
func (p *Postgres) initdb(ctx context.Context, more ...string) error {
	cmd := p.command(ctx, "initdb", append(more, "--pgdata", p.dataDir(), "--username", superuser, "--pwfile", p.passwordFile(),
		"--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-sync")...)
	output, err := cmd.CombinedOutput()
	if err != nil {
		err = p.account.explain(err, p.program("initdb"), p.dir)
		return fmt.Errorf("initdb: %w: %s", err, bytes.TrimSpace(output))
	}
	return nil
}

// installCertificate makes the next start, or a reload, use the certificate.
func (p *Postgres) installCertificate(c Certificate) error {
	for name, file := range map[string]struct {
		setting string
		text    []byte
	}{
		"server.crt": {"ssl_cert_file", c.Cert},
		"server.key": {"ssl_key_file", c.Key},
	} {
		path := filepath.Join(p.dir, name)
		if err := os.WriteFile(path, file.text, 0o600); err != nil {
			return err
		}
		if err := p.account.own(path); err != nil {
			return err
		}
		p.settings[file.setting] = path
	}
	p.settings["ssl"] = "on"
	return nil
}

// RenewCertificate gives a running server, which was started with a certificate,
// another one, and returns when new connections see it. Those that are there stay.
func (p *Postgres) RenewCertificate(ctx context.Context, c Certificate) error {
	if err := p.installCertificate(c); err != nil {
		return fmt.Errorf("renew the certificate: %w", err)
	}
	before, err := p.loaded(ctx, "SELECT pg_conf_load_time() FROM pg_reload_conf()")
	for loaded := before; err == nil && !loaded.After(before); {
		loaded, err = p.loaded(ctx, "SELECT pg_conf_load_time()")
	}
	if err != nil {
		return fmt.Errorf("renew the certificate: %w", err)
	}
	return nil
}

// loaded asks in a new session, which knows the settings as the server does.
func (p *Postgres) loaded(ctx context.Context, query string) (at time.Time, err error) {
	conn, err := pgx.Connect(ctx, p.URL())
	if err != nil {
		return at, err
	}
	err = conn.QueryRow(ctx, query).Scan(&at)
	return at, errors.Join(err, conn.Close(ctx))
}

// CloneMode is what a clone of a running cluster is for.
type CloneMode int

const (
	// Backup is a cluster of its own, with the data as of the end of Clone. It is
	// stopped: Start restores it.
	Backup CloneMode = iota
	// Standby follows the cluster it was cloned from by asynchronous streaming
	// replication, until Promote.
	Standby
)

// Clone copies the running cluster by pg_basebackup. Users and passwords are the
// same. End the clone by Close.
func (p *Postgres) Clone(ctx context.Context, mode CloneMode) (*Postgres, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	c, err := p.clone(ctx, mode)
	if err != nil {
		return nil, fmt.Errorf("clone PostgreSQL: %w", err)
	}
	return c, nil
}

func (p *Postgres) clone(ctx context.Context, mode CloneMode) (*Postgres, error) {
	c, err := p.sibling(p.binaries)
	if err != nil {
		return nil, err
	}
	args := []string{"--pgdata", c.dataDir(), "--dbname", p.URL(), "--wal-method", "stream", "--checkpoint", "fast", "--no-sync"}
	if mode == Standby {
		args = append(args, "--write-recovery-conf")
	}
	err = c.makeFolders()
	if err == nil {
		var output []byte
		output, err = c.command(ctx, "pg_basebackup", args...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("pg_basebackup: %w: %s", err, bytes.TrimSpace(output))
		}
	}
	if err == nil {
		err = c.place(ctx, mode)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(c.dir))
	}
	return c, nil
}

// sibling is a cluster to be made of this one, of the servers in binaries: in a folder of its
// own, with the same users, passwords and settings.
func (p *Postgres) sibling(binaries string) (*Postgres, error) {
	dir, _, err := dataFolder("", filepath.Dir(p.dir), "projector-postgres-")
	if err != nil {
		return nil, err
	}
	return &Postgres{
		dir: dir, temporary: true, binaries: binaries, account: p.account,
		settings: p.settings, log: p.log, password: p.password,
	}, nil
}

// place gives the clone a port, and starts it when it is to follow.
func (p *Postgres) place(ctx context.Context, mode CloneMode) error {
	if mode == Standby {
		return retryStart(ctx, p.startOnNewPort)
	}
	ports, err := freePorts(1)
	if err == nil {
		p.port = ports[0]
	}
	return err
}

// Lag holds a standby back: it hears no more of the cluster it follows.
func (p *Postgres) Lag(ctx context.Context) error {
	return p.each(ctx, "ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
}

// Promote makes a standby a primary, with what it has received so far.
func (p *Postgres) Promote(ctx context.Context) error {
	return p.each(ctx, "SELECT pg_promote()")
}

// Set changes server parameters, name and value in turn, for new and running
// sessions. An empty value takes a change back.
func (p *Postgres) Set(ctx context.Context, settings ...string) error {
	var statements []string
	for pair := range slices.Chunk(settings, 2) {
		statement := "ALTER SYSTEM RESET " + quoted(pair[0])
		if pair[1] != "" {
			statement = "ALTER SYSTEM SET " + quoted(pair[0]) + " = '" + pair[1] + "'"
		}
		statements = append(statements, statement)
	}
	return p.each(ctx, append(statements, "SELECT pg_reload_conf()")...)
}

func (p *Postgres) each(ctx context.Context, statements ...string) error {
	for _, statement := range statements {
		if err := execute(ctx, p.URL(), statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}
