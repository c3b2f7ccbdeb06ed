//go:build matrix

package devstack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
)

// Upgrade stops the cluster and copies it by pg_upgrade into a new cluster of a newer version. It
// starts the new cluster. binaries is the folder of the newer version. Users and passwords are the
// same. Upgrade needs pg_upgrade in binaries and pg_ctl in both folders. Close ends the new
// cluster.
func (p *Postgres) Upgrade(ctx context.Context, binaries string) (*Postgres, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	upgraded, err := p.sibling(binaries)
	if err != nil {
		return nil, err
	}
	if err := upgraded.takeOver(ctx, p); err != nil {
		return nil, errors.Join(fmt.Errorf("upgrade PostgreSQL: %w", err), upgraded.Close(ctx))
	}
	return upgraded, nil
}

func (p *Postgres) takeOver(ctx context.Context, old *Postgres) error {
	if err := p.makeFolders(); err != nil {
		return err
	}
	// PostgreSQL 18 and later use checksums by default, and pg_upgrade requires the same setting in
	// both clusters.
	if err := p.initdb(ctx, p.dataDir(), "--no-data-checksums"); err != nil {
		return err
	}
	if err := old.Stop(ctx, Fast); err != nil {
		return err
	}
	// pg_upgrade needs a folder with a short path for its sockets, because the path of a socket may
	// have at most 107 bytes.
	sockets, err := os.MkdirTemp("", "up")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(sockets) }()
	if err := p.account.own(sockets); err != nil {
		return err
	}
	cmd := p.command(ctx, "pg_upgrade", "--username", superuser, "--socketdir", sockets,
		"--old-bindir", old.binaries, "--old-datadir", old.dataDir(), "--new-bindir", p.binaries, "--new-datadir", p.dataDir())
	cmd.Env = append(cmd.Env, "PGPASSWORD="+p.password)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pg_upgrade: %w: %s", err, bytes.TrimSpace(output))
	}
	return retryStart(ctx, p.startOnNewPort)
}
