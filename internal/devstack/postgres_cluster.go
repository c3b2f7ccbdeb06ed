package devstack

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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
// known. The password file stays beside the data, for the next start.
func (p *Postgres) prepare(ctx context.Context) error {
	passwordFile := filepath.Join(p.dir, "password")
	if _, err := os.Stat(filepath.Join(p.dataDir(), "PG_VERSION")); err == nil {
		password, err := os.ReadFile(passwordFile)
		p.password = string(bytes.TrimSpace(password))
		return err
	}
	p.password = randomName()
	if err := p.makeFolders(passwordFile); err != nil {
		return err
	}
	return p.initdb(ctx, passwordFile)
}

// makeFolders leaves the server's user what it must own: an empty data folder
// and the password. A temporary folder belongs to it as a whole, else the user
// could not enter it.
func (p *Postgres) makeFolders(passwordFile string) error {
	if err := os.Mkdir(p.dataDir(), 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	if err := os.WriteFile(passwordFile, []byte(p.password+"\n"), 0o600); err != nil {
		return err
	}
	owned := []string{p.dataDir(), passwordFile}
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
func (p *Postgres) initdb(ctx context.Context, passwordFile string) error {
	cmd := p.command(ctx, "initdb", "--pgdata", p.dataDir(), "--username", superuser, "--pwfile", passwordFile,
		"--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-sync")
	output, err := cmd.CombinedOutput()
	if err != nil {
		err = p.account.explain(err, p.program("initdb"), p.dir)
		return fmt.Errorf("initdb: %w: %s", err, bytes.TrimSpace(output))
	}
	return nil
}
