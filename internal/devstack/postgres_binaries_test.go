package devstack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// programs creates programs in a folder. Each program prints text.
func programs(t *testing.T, text string, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		script := "#!/bin/sh\necho '" + text + "'\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestUsablePostgres(t *testing.T) {
	tests := map[string]struct {
		dir  string
		want string // expected part of the error, "" for no error
	}{
		"good":       {programs(t, "postgres (PostgreSQL) 15.13 (Debian 15.13-0)", "initdb", "postgres"), ""},
		"oldest":     {programs(t, "postgres (PostgreSQL) 13.0", "initdb", "postgres"), ""},
		"beta":       {programs(t, "postgres (PostgreSQL) 19beta1", "initdb", "postgres"), ""},
		"too old":    {programs(t, "postgres (PostgreSQL) 12.22", "initdb", "postgres"), "older than 13"},
		"no version": {programs(t, "hello", "initdb", "postgres"), "names no version"},
		"client":     {programs(t, "", "psql", "pg_config"), "holds no program initdb"},
		"no server":  {programs(t, "", "initdb"), "holds no program postgres"},
		"no folder":  {filepath.Join(t.TempDir(), "none"), "holds no program"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := usablePostgres(t.Context(), test.dir)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestPostgresBinariesUsesTheNamedFolder(t *testing.T) {
	named := programs(t, "postgres (PostgreSQL) 16.1", "initdb", "postgres")
	t.Setenv("PG_BINDIR", named)
	if got, err := postgresBinaries(t.Context()); err != nil || got != named {
		t.Errorf("got %q, %v, want %q", got, err, named)
	}
	t.Setenv("PG_BINDIR", t.TempDir())
	if got, err := postgresBinaries(t.Context()); err == nil || !strings.Contains(err.Error(), "PG_BINDIR") {
		t.Errorf("an empty PG_BINDIR: got %q, %v", got, err)
	}
	t.Setenv("PG_BINDIR", "")
	t.Setenv("PROJECTOR_POSTGRES_VERSION", "12")
	if got, err := postgresBinaries(t.Context()); err == nil || !strings.Contains(err.Error(), "13 14") {
		t.Errorf("PostgreSQL 12: got %q, %v", got, err)
	}
}

func TestFolderVersion(t *testing.T) {
	for dir, want := range map[string]int{
		"/usr/lib/postgresql/16/bin":              16,
		"/opt/homebrew/opt/postgresql@15/bin":     15,
		"/usr/pgsql-9/bin":                        9,
		"/usr/local/pgsql/bin":                    0,
		"/usr/local/opt/postgresql/bin":           0,
		"/Applications/Postgres.app/Versions/17/": 17,
	} {
		if got := folderVersion(dir); got != want {
			t.Errorf("%s: got %d, want %d", dir, got, want)
		}
	}
}

func TestWithDatabase(t *testing.T) {
	got, err := WithDatabase("postgres://u@h:1/a?sslmode=disable", "b")
	if want := "postgres://u@h:1/b?sslmode=disable"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	for _, bad := range []string{"host=h password=secret", "mysql://u:secret@h/a", "postgres://u:secret%@h/a"} {
		if _, err := WithDatabase(bad, "b"); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want an error without the password", bad, err)
		}
	}
}
