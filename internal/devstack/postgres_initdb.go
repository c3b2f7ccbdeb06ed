package devstack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// createData creates the cluster's data. It copies data that initdb has created once for all
// clusters of this PostgreSQL, because that takes a seventh of the processor time of initdb. Without
// such data it runs initdb. The log then names the reason.
func (p *Postgres) createData(ctx context.Context) error {
	created, err := p.createdData(ctx)
	if err != nil {
		_, _ = fmt.Fprintf(p.log, "PostgreSQL starts more slowly, because no data could be prepared: %v\n", err)
		return p.initdb(ctx, p.dataDir())
	}
	if output, err := p.run(ctx, "cp", "-R", created+"/.", p.dataDir()).CombinedOutput(); err != nil {
		return fmt.Errorf("copy the data of a new cluster: %w: %s", err, bytes.TrimSpace(output))
	}
	return p.setPassword(ctx)
}

// createdData returns the prepared data in the cache. Its superuser has a password that nobody
// knows.
func (p *Postgres) createdData(ctx context.Context) (string, error) {
	root, err := binariesRoot()
	if err != nil {
		return "", err
	}
	version, err := p.command(ctx, "postgres", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("postgres --version: %w", err)
	}
	name := "postgresql-data-" + nameOf(append(version, strings.Join(initdbOptions, " ")+p.binaries...))
	dir, err := cached(root, name, func(dir string) error {
		if err := p.account.own(dir); err != nil {
			return err
		}
		return p.initdb(ctx, filepath.Join(dir, "data"))
	})
	return filepath.Join(dir, "data"), err
}

// setPassword gives the superuser the cluster's own password before the first start.
func (p *Postgres) setPassword(ctx context.Context) error {
	secret := p.password
	if p.fastLogin {
		var err error
		if secret, err = scramVerifier(p.password); err != nil {
			return fmt.Errorf("set the superuser's password: %w", err)
		}
	}
	cmd := p.command(ctx, "postgres", "--single", "-D", p.dataDir(), "-c", "fsync=off", superuser)
	cmd.Stdin = strings.NewReader("ALTER ROLE " + superuser + " PASSWORD '" + secret + "'\n")
	output, err := cmd.CombinedOutput()
	if err == nil && bytes.Contains(output, []byte("ERROR")) {
		err = errors.New("ALTER ROLE failed")
	}
	if err != nil {
		err = p.account.explain(err, p.program("postgres"), p.dir)
		return fmt.Errorf("set the superuser's password: %w: %s", err, bytes.TrimSpace(output))
	}
	return nil
}

// initdbOptions do not flush the files, because a crash of the machine would lose only an empty
// cluster.
var initdbOptions = []string{
	"--username", superuser, "--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-sync",
}

// initdb creates data with the cluster's password.
func (p *Postgres) initdb(ctx context.Context, data string, more ...string) error {
	args := append([]string{"--pgdata", data, "--pwfile", p.passwordFile()}, initdbOptions...)
	output, err := p.command(ctx, "initdb", append(args, more...)...).CombinedOutput()
	if err != nil {
		err = p.account.explain(err, p.program("initdb"), p.dir)
		return fmt.Errorf("initdb: %w: %s", err, bytes.TrimSpace(output))
	}
	return nil
}
