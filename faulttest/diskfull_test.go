//go:build faults

package faulttest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"projector/e2e/wait"
)

// diskFull fills the database's disk and then frees it. If this process may not mount a small disk,
// PostgreSQL is made to report a full disk instead.
func diskFull() fault {
	return fault{name: "disk full", strike: func(s *scene) int {
		fill, empty := s.smallDisk()
		fill()
		s.await("retries", s.retries("postgres", "53100", 0))
		wait.Until(s.t, 30*time.Second, "unready", func() (state string) {
			for _, r := range s.replicas { // a replica may still find space in its existing pages
				if state = r.Answers("/readyz", 503, "53100")(); state == "" {
					return ""
				}
			}
			return state
		})
		s.pause(5 * time.Second)
		hits := s.retried("postgres", "53100")
		empty()
		return hits
	}}
}

// smallDisk moves the database to a separate small disk.
func (s *scene) smallDisk() (fill, empty func()) {
	s.t.Helper()
	dir := filepath.Join(s.t.TempDir(), "disk")
	check(s.t, os.Mkdir(dir, 0o755))
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=96m,mode=755"); err != nil {
		s.t.Logf("no disk of its own (%v): PostgreSQL returns that it is full", err)
		return s.saysFull, s.saysRoom
	}
	s.t.Cleanup(func() {
		if err := s.cluster.Close(context.Background()); err != nil {
			s.t.Errorf("close PostgreSQL: %v", err)
		}
		if err := syscall.Unmount(dir, 0); err != nil {
			s.t.Errorf("unmount: %v", err)
		}
	})
	s.moveToDisk(dir)
	filler := filepath.Join(dir, "filler")
	return func() { s.fillUp(filler) }, func() {
		check(s.t, os.Remove(filler))
		s.move("pg_default") // the next fault needs an ordinary database
		s.exec("DROP TABLESPACE small")
	}
}

// moveToDisk moves the database's files while it is in use.
func (s *scene) moveToDisk(dir string) {
	s.t.Helper()
	var data string
	check(s.t, s.db.QueryRow(s.t.Context(), "SELECT current_setting('data_directory')").Scan(&data))
	own := must(os.Stat(data))(s.t).Sys().(*syscall.Stat_t)
	space := filepath.Join(dir, "tablespace")
	check(s.t, os.Mkdir(space, 0o700))
	check(s.t, os.Chown(space, int(own.Uid), int(own.Gid)))
	for parent := dir; parent != "/"; parent = filepath.Dir(parent) { // PostgreSQL's user needs access to each parent folder
		if info, err := os.Stat(parent); err == nil && info.Mode()&0o001 == 0 {
			check(s.t, os.Chmod(parent, info.Mode()|0o001))
		}
	}
	s.exec(fmt.Sprintf("CREATE TABLESPACE small LOCATION '%s'", space))
	s.move("small")
	s.await("progress on the small disk", s.moved())
}

// move moves the database's files to a tablespace.
func (s *scene) move(tablespace string) {
	s.t.Helper()
	var name string
	check(s.t, s.db.QueryRow(s.t.Context(), "SELECT current_database()").Scan(&name))
	admin := must(pgx.Connect(s.t.Context(), s.cluster.URL()))(s.t)
	defer func() { _ = admin.Close(s.t.Context()) }()
	quoted := pgx.Identifier{name}.Sanitize()
	for _, statement := range []string{
		"ALTER DATABASE " + quoted + " ALLOW_CONNECTIONS false",
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" + name + "'",
		"ALTER DATABASE " + quoted + " SET TABLESPACE " + tablespace,
		"ALTER DATABASE " + quoted + " ALLOW_CONNECTIONS true",
	} {
		_, err := admin.Exec(s.t.Context(), statement)
		check(s.t, err)
	}
	s.use(s.url)
	s.watch.follow(s.db)
}

// fillUp fills the disk completely.
func (s *scene) fillUp(path string) {
	s.t.Helper()
	file := must(os.Create(path))(s.t)
	defer func() { _ = file.Close() }()
	for size := 1 << 20; size > 0; {
		_, err := file.Write(make([]byte, size))
		switch {
		case errors.Is(err, syscall.ENOSPC):
			size /= 2
		case err != nil:
			s.t.Fatal(err)
		}
	}
}

func (s *scene) saysFull() {
	s.exec(`CREATE OR REPLACE FUNCTION disk_full() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$;
		CREATE TRIGGER disk_full BEFORE INSERT OR UPDATE ON account_balance EXECUTE FUNCTION disk_full();`)
}

func (s *scene) saysRoom() { s.exec("DROP TRIGGER disk_full ON account_balance") }
