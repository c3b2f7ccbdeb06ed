// Package devstack starts what the projector talks to, on this machine and for
// one process: a broker inside the process (kfake), a real Apache Kafka, Kafka
// Connect with Debezium, a schema registry, a real PostgreSQL. It is what the demos
// and the tests run on, so that neither needs Docker, a service manager or a
// prepared host.
//
//	Fake      kfake, a few milliseconds. Speaks the protocol, takes injected faults.
//	Kafka     Apache Kafka in KRaft mode, 1 or 3 nodes, from Maven Central. Needs java and mvn.
//	Connect   Kafka Connect with Debezium's PostgreSQL connector, from Maven Central.
//	Registry  Apicurio Registry, with Confluent's API, from Maven Central.
//	Postgres  initdb and postgres from this machine, else downloaded once.
//
// Servers listen on 127.0.0.1 only, on ports from below the range the kernel
// hands out to outgoing connections: a stopped server finds its port free again.
// A context given to a start function limits the start and not the life of the
// server; the server lives until Stop or Close. Should this process die without
// getting there, Linux ends the servers with it; on other systems they stay.
//
// Data goes to a fresh temporary folder, removed by Close, or to a folder the
// caller names, which is kept and taken up again by the next start.
//
// PostgreSQL refuses to run as root: a caller who is root gets it as user
// postgres or nobody, with a data folder that this user owns.
package devstack

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// account is the user a server runs as. Nil means: the calling user.
type account struct {
	name     string
	uid, gid int
}

// serverAccount returns the user PostgreSQL runs as, which is not root.
func serverAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // nil is the calling user
	}
	for _, name := range []string{"postgres", "nobody"} {
		entry, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.Atoi(entry.Uid)
		gid, gidErr := strconv.Atoi(entry.Gid)
		if err := errors.Join(uidErr, gidErr); err != nil {
			return nil, fmt.Errorf("user %s: %w", name, err)
		}
		return &account{name: name, uid: uid, gid: gid}, nil
	}
	return nil, errors.New("PostgreSQL does not run as root and there is no user postgres or nobody: start as another user")
}

// attributes makes a command run as the account.
func (a *account) attributes() *syscall.SysProcAttr {
	if a == nil {
		return &syscall.SysProcAttr{}
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}}
}

// own gives path to the account.
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	return os.Chown(path, a.uid, a.gid)
}

// explain adds the remedy to a start that failed because the account may not
// enter the folder or read the program, which the caller, being root, may.
func (a *account) explain(err error, program, dir string) error {
	if a == nil || !errors.Is(err, os.ErrPermission) {
		return err
	}
	return fmt.Errorf("user %s cannot execute %s or cannot enter %s: open both, with all their parent folders, "+
		"to that user (chmod o+x), or choose others by PG_BINDIR and TMPDIR: %w", a.name, program, dir, err)
}

// dataFolder makes sure that dir exists, or makes a temporary folder in root when
// dir is empty. The path returned is absolute.
func dataFolder(dir, root, prefix string) (path string, temporary bool, err error) {
	if dir == "" {
		path, err = os.MkdirTemp(root, prefix)
		return path, true, err
	}
	if path, err = filepath.Abs(dir); err != nil {
		return "", false, err
	}
	return path, false, os.MkdirAll(path, 0o755)
}

// randomName is a name nobody else uses and nobody can guess: it serves as
// password too. Lower-case letters and digits.
func randomName() string { return strings.ToLower(rand.Text()) }

// serverLog makes w, which may be nil, a place several servers can write to.
func serverLog(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return &lockedWriter{w: w}
}

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// Write implements io.Writer.
func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
