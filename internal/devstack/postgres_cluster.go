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

// postgresSettings adds the caller's server parameters to the defaults. The defaults are small, but
// fsync and full-page writes are on because the tests check durability. Logs are terse, because
// PostgreSQL would otherwise write statements and rows with amounts into the log.
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

// passwordFile is for initdb, which reads the superuser's password from a file.
func (p *Postgres) passwordFile() string { return filepath.Join(p.dir, "password") }

// serverArgs are the arguments of postgres. There is no Unix socket, because its path would be too
// long in many temporary folders.
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

// makeFolders creates the data folder and the password file. Both belong to the server's user. This
// user also owns the cluster's folder, because it could not enter the folder otherwise.
func (p *Postgres) makeFolders() error {
	if err := os.Mkdir(p.dataDir(), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(p.passwordFile(), []byte(p.password+"\n"), 0o600); err != nil {
		return err
	}
	for _, path := range []string{p.dataDir(), p.passwordFile(), p.dir} {
		if err := p.account.own(path); err != nil {
			return err
		}
	}
	return nil
}

// installCertificate writes the certificate. The server reads it at the next start or reload.
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

// RenewCertificate gives a running server another certificate and returns when new connections get
// it. Existing connections continue. The server must have been started with a certificate.
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

// loaded runs the query in a new session, because only a new session has the server's current
// settings.
func (p *Postgres) loaded(ctx context.Context, query string) (at time.Time, err error) {
	conn, err := pgx.Connect(ctx, p.URL())
	if err != nil {
		return at, err
	}
	err = conn.QueryRow(ctx, query).Scan(&at)
	return at, errors.Join(err, conn.Close(ctx))
}

// CloneMode says what a clone of a running cluster is for.
type CloneMode int

const (
	// Backup is an independent cluster with the data as of the end of Clone. Clone leaves it
	// stopped, and Start starts it as a restored backup.
	Backup CloneMode = iota
	// Standby follows the original cluster by asynchronous streaming replication until Promote.
	Standby
)

// Clone copies the running cluster by pg_basebackup. The clone has the same users and passwords.
// Close ends the clone.
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

// sibling returns a new cluster in its own folder, with the same users, passwords and settings, for
// the servers in binaries. It creates no data.
func (p *Postgres) sibling(binaries string) (*Postgres, error) {
	dir, err := os.MkdirTemp(filepath.Dir(p.dir), "projector-postgres-")
	if err != nil {
		return nil, err
	}
	return &Postgres{
		dir: dir, binaries: binaries, account: p.account, settings: p.settings, log: p.log, password: p.password,
	}, nil
}

// place gives the clone a port. A standby is also started.
func (p *Postgres) place(ctx context.Context, mode CloneMode) error {
	if mode == Standby {
		return retryStart(ctx, p.startOnNewPort)
	}
	return p.choosePort()
}

// Lag stops a standby from receiving changes of the cluster it follows.
func (p *Postgres) Lag(ctx context.Context) error {
	return p.each(ctx, "ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
}

// Promote makes a standby a primary with the data it has received so far.
func (p *Postgres) Promote(ctx context.Context) error {
	return p.each(ctx, "SELECT pg_promote()")
}

// Set changes server parameters for new and running sessions. Settings are name, value, name,
// value, and so on. An empty value resets a parameter.
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
