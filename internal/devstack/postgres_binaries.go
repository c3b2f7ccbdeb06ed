package devstack

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// oldestPostgres is the oldest major version that the read model supports.
const oldestPostgres = 13

// usualFolders are where the packages of PostgreSQL install the servers.
var usualFolders = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/usr/local/pgsql/bin",
	"/opt/homebrew/opt/postgresql*/bin",
	"/usr/local/opt/postgresql*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
}

var digits = regexp.MustCompile(`\d+`)

// postgresBinaries returns a folder that holds initdb and postgres. It uses the first source that
// applies:
//   - $PG_BINDIR
//   - a download of the major version in $PROJECTOR_POSTGRES_VERSION
//   - the folder that pg_config prints
//   - the folder in PATH that holds postgres
//   - the usual folders, highest version first
//   - a download of the default version
//
// A download is stored in the cache.
func postgresBinaries(ctx context.Context) (string, error) {
	if dir := os.Getenv("PG_BINDIR"); dir != "" {
		if err := usablePostgres(ctx, dir); err != nil {
			return "", fmt.Errorf("PG_BINDIR: %w", err)
		}
		return dir, nil
	}
	if major := os.Getenv("PROJECTOR_POSTGRES_VERSION"); major != "" {
		version, found := downloads[major]
		if !found {
			return "", fmt.Errorf("PROJECTOR_POSTGRES_VERSION: %s is none of %v", major, slices.Sorted(maps.Keys(downloads)))
		}
		return downloadPostgres(version)
	}
	for _, dir := range localFolders(ctx) {
		if usablePostgres(ctx, dir) == nil {
			return dir, nil
		}
	}
	dir, err := downloadPostgres(downloads["17"])
	if err == nil {
		err = usablePostgres(ctx, dir)
	}
	if err != nil {
		return "", fmt.Errorf("no PostgreSQL on this machine and none could be downloaded; "+
			"install the PostgreSQL server (version %d or newer), or name its folder in PG_BINDIR: %w", oldestPostgres, err)
	}
	return dir, nil
}

// localFolders lists the folders to search, best first.
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
		matches, _ := filepath.Glob(pattern) // cannot fail, because the patterns are constant and valid
		found = append(found, matches...)
	}
	slices.SortStableFunc(found, func(a, b string) int { return cmp.Compare(folderVersion(b), folderVersion(a)) })
	return append(dirs, found...)
}

// folderVersion returns the major version in a folder's name, or 0 if there is none. It returns 16
// for /usr/lib/postgresql/16/bin and 15 for .../opt/postgresql@15/bin.
func folderVersion(dir string) int {
	version, _ := strconv.Atoi(digits.FindString(dir))
	return version
}

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
	major, err := strconv.Atoi(digits.FindString(string(out))) // for example: postgres (PostgreSQL) 15.13 (Debian …)
	if err != nil {
		return errors.New(dir + ": postgres --version names no version")
	}
	if major < oldestPostgres {
		return fmt.Errorf("%s holds PostgreSQL %d, which is older than %d", dir, major, oldestPostgres)
	}
	return nil
}

// downloads has the versions that can be downloaded, by major version. Version 13 has an explicit
// value, because the library's own constant names a version that is not in Maven Central.
var downloads = map[string]embeddedpostgres.PostgresVersion{
	"13": "13.23.0", "14": embeddedpostgres.V14, "15": embeddedpostgres.V15,
	"16": embeddedpostgres.V16, "17": embeddedpostgres.V17, "18": embeddedpostgres.V18,
}

// downloadPostgres returns the cache folder of the servers and downloads them on first use.
func downloadPostgres(version embeddedpostgres.PostgresVersion) (string, error) {
	root, err := binariesRoot()
	if err != nil {
		return "", err
	}
	dir, err := cached(root, "postgresql-"+string(version), func(dir string) error { return fetchPostgres(dir, version) })
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "bin"), nil
}

// binariesRoot returns the cache folder for servers that run as serverAccount. Other users cannot
// read root's cache, so root uses the system's cache folder.
func binariesRoot() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/cache/projector", nil
	}
	return cacheRoot()
}

// fetchPostgres downloads the servers and unpacks them into dir. The library has no separate call
// for this. Its Start downloads and unpacks, and then checks the data folder. This function passes
// an invalid data folder, so Start always fails. fetchPostgres ignores this error if the servers
// are in dir.
func fetchPostgres(dir string, version embeddedpostgres.PostgresVersion) error {
	scratch, err := os.MkdirTemp("", "projector-download-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	data := filepath.Join(scratch, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	major := digits.FindString(string(version))
	if err := os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte(major+"\n"), 0o600); err != nil {
		return err
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	err = embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Version(version).
		Port(uint32(ports[0])).
		CachePath(filepath.Join(scratch, "archive")).
		RuntimePath(filepath.Join(scratch, "runtime")).
		DataPath(data).
		BinariesPath(dir).
		Logger(io.Discard)).Start()
	for _, name := range []string{"initdb", "postgres"} {
		if !isProgram(filepath.Join(dir, "bin", name)) {
			return fmt.Errorf("download of PostgreSQL %s: %w", version, err)
		}
	}
	return nil
}

// nameOf returns the part of a cached folder's name that depends on what the folder was made from.
func nameOf(source []byte) string {
	const digits = 12
	sum := sha256.Sum256(source)
	return hex.EncodeToString(sum[:])[:digits]
}

// cached returns the folder with the given name in root. On first use, fill creates it under
// another name. The folder is renamed when it is complete, so no process sees an incomplete folder.
// If two processes create it at the same time, one of them discards its copy.
func cached(root, name string, fill func(dir string) error) (string, error) {
	final := filepath.Join(root, name)
	if _, err := os.Stat(final); err == nil {
		return final, nil
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", fmt.Errorf("cache folder: %w", err)
	}
	partial, err := os.MkdirTemp(root, name+".partial-")
	if err != nil {
		return "", fmt.Errorf("cache folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(partial) }() // does nothing after the rename
	if err := fill(partial); err != nil {
		return "", err
	}
	if err := os.Chmod(partial, 0o755); err != nil {
		return "", fmt.Errorf("cache folder: %w", err)
	}
	if err := os.Rename(partial, final); err != nil && !isDir(final) {
		return "", fmt.Errorf("cache folder: %w", err)
	}
	return final, nil
}

// cacheRoot returns the projector's folder in the user's cache directory.
func cacheRoot() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder, set XDG_CACHE_HOME: %w", err)
	}
	return filepath.Join(base, "projector"), nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != fs.FileMode(0)
}
