package devstack

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// downloadVersion is the PostgreSQL that is downloaded where none is installed.
const downloadVersion = embeddedpostgres.V17

// downloadPostgres returns the folder of servers in the cache, downloading them
// on first use.
func downloadPostgres() (string, error) {
	root, err := binariesRoot()
	if err != nil {
		return "", err
	}
	dir, err := cached(root, "postgresql-"+string(downloadVersion), fetchPostgres)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "bin"), nil
}

// binariesRoot is the cache folder for servers that run as serverAccount. The
// cache of root is closed to other users, so root keeps them in the system's.
func binariesRoot() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/cache/projector", nil
	}
	return cacheRoot()
}

// fetchPostgres downloads the servers and unpacks them into dir. The library has
// no call for just that: its Start downloads and unpacks before it looks at the
// data folder. Given one that claims to hold a cluster and does not, it goes no
// further. So its error counts only when the servers are not there.
func fetchPostgres(dir string) error {
	scratch, err := os.MkdirTemp("", "projector-download-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	data := filepath.Join(scratch, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	major := digits.FindString(string(downloadVersion))
	if err := os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte(major+"\n"), 0o600); err != nil {
		return err
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	err = embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Version(downloadVersion).
		Port(uint32(ports[0])).
		CachePath(filepath.Join(scratch, "archive")).
		RuntimePath(filepath.Join(scratch, "runtime")).
		DataPath(data).
		BinariesPath(dir).
		Logger(io.Discard)).Start()
	for _, name := range []string{"initdb", "postgres"} {
		if !isProgram(filepath.Join(dir, "bin", name)) {
			return fmt.Errorf("download of PostgreSQL %s: %w", downloadVersion, err)
		}
	}
	return nil
}
