package e2e_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"projector/internal/devstack"
	"projector/internal/testbank"
)

// secretFolder has the layout of a secret that Kubernetes mounts. The files are symlinks into a
// folder that is itself a symlink. When the folder's symlink is replaced, all files change at once.
type secretFolder struct {
	t     testing.TB
	dir   string
	files map[string]string
	turn  int
}

func newSecretFolder(t testing.TB, files map[string]string) *secretFolder {
	t.Helper()
	f := &secretFolder{t: t, dir: t.TempDir(), files: map[string]string{}}
	f.swap(files)
	for name := range files {
		if err := os.Symlink(filepath.Join("..data", name), f.path(name)); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func (f *secretFolder) path(name string) string { return filepath.Join(f.dir, name) }

// swap changes some of the files. All other files keep their content.
func (f *secretFolder) swap(changed map[string]string) {
	f.t.Helper()
	maps.Copy(f.files, changed)
	f.turn++
	folder := fmt.Sprintf("..turn-%d", f.turn)
	err := os.Mkdir(f.path(folder), 0o700)
	for name, text := range f.files {
		if err == nil {
			err = os.WriteFile(filepath.Join(f.path(folder), name), []byte(text), 0o600)
		}
	}
	if err == nil {
		err = os.Symlink(folder, f.path("..data_tmp"))
	}
	if err == nil {
		err = os.Rename(f.path("..data_tmp"), f.path("..data"))
	}
	if err != nil {
		f.t.Fatalf("swap the secrets: %v", err)
	}
}

func newAuthority(t testing.TB) *devstack.Authority {
	t.Helper()
	authority, err := devstack.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

func issue(t testing.TB, authority *devstack.Authority, name string, hosts ...string) devstack.Certificate {
	t.Helper()
	certificate, err := authority.Issue(name, hosts...)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// The function opened returns the first event of an account.
func opened(account string) testbank.Record {
	return testbank.Record{Key: []byte(account), Value: fmt.Appendf(nil, `{"eventId":"open-%[1]s","eventType":"AccountOpened",`+
		`"accountId":%[1]q,"version":1,"occurredAt":"2026-01-01T00:00:00Z","data":{"currency":"EUR"}}`, account)}
}
