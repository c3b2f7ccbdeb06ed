package devstack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

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
	dir, _, err := dataFolder("", filepath.Dir(p.dir), "projector-postgres-")
	if err != nil {
		return nil, err
	}
	c := &Postgres{
		dir: dir, temporary: true, binaries: p.binaries, account: p.account,
		settings: p.settings, log: p.log, password: p.password,
	}
	args := []string{"--pgdata", c.dataDir(), "--dbname", p.URL(), "--wal-method", "stream", "--checkpoint", "fast", "--no-sync"}
	if mode == Standby {
		args = append(args, "--write-recovery-conf")
	}
	err = c.makeFolders(filepath.Join(dir, "password"))
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
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return c, nil
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
