package devstack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// oldestPostgres is the first major version the read model supports.
const oldestPostgres = 13

// usualFolders are where packages of PostgreSQL put its servers.
var usualFolders = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/usr/local/pgsql/bin",
	"/opt/homebrew/opt/postgresql*/bin",
	"/usr/local/opt/postgresql*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
}

var digits = regexp.MustCompile(`\d+`)

// postgresBinaries returns a folder that holds initdb and postgres: $PG_BINDIR,
// else that of pg_config, of PATH, the usual folders (highest version first),
// else a copy downloaded once into the cache.
func postgresBinaries(ctx context.Context) (string, error) {
	if dir := os.Getenv("PG_BINDIR"); dir != "" {
		if err := usablePostgres(ctx, dir); err != nil {
			return "", fmt.Errorf("PG_BINDIR: %w", err)
		}
		return dir, nil
	}
	for _, dir := range localFolders(ctx) {
		if usablePostgres(ctx, dir) == nil {
			return dir, nil
		}
	}
	dir, err := downloadPostgres()
	if err == nil {
		err = usablePostgres(ctx, dir)
	}
	if err != nil {
		return "", fmt.Errorf("no PostgreSQL on this machine and none could be downloaded; "+
			"install the PostgreSQL server (version %d or newer), or name its folder in PG_BINDIR: %w", oldestPostgres, err)
	}
	return dir, nil
}

// localFolders lists where to look, best first.
func localFolders(ctx context.Context) []string {
	var dirs []string
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	var found []string
	for _, pattern := range usualFolders {
		matches, _ := filepath.Glob(pattern) // the patterns are constant and valid
		found = append(found, matches...)
	}
	slices.SortStableFunc(found, func(a, b string) int { return cmp.Compare(folderVersion(b), folderVersion(a)) })
	return append(dirs, found...)
}

// folderVersion is the major version in a folder's name, 0 when it has none:
// /usr/lib/postgresql/16/bin is 16, .../opt/postgresql@15/bin is 15.
func folderVersion(dir string) int {
	version, _ := strconv.Atoi(digits.FindString(dir))
	return version
}

// usablePostgres says what is wrong with the servers in dir, if anything.
func usablePostgres(ctx context.Context, dir string) error {
	for _, name := range []string{"initdb", "postgres"} {
		if !isProgram(filepath.Join(dir, name)) {
			return fmt.Errorf("%s holds no program %s", dir, name)
		}
	}
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return fmt.Errorf("%s: postgres --version: %w", dir, err)
	}
	major, err := strconv.Atoi(digits.FindString(string(out))) // postgres (PostgreSQL) 15.13 (Debian …)
	if err != nil {
		return errors.New(dir + ": postgres --version names no version")
	}
	if major < oldestPostgres {
		return fmt.Errorf("%s holds PostgreSQL %d, which is older than %d", dir, major, oldestPostgres)
	}
	return nil
}
