// Package devstack starts the servers that the projector connects to, on this machine and for one
// process. The demos and the tests use it, so they need no Docker and no service manager.
//
//	Fake      kfake, ready in a few milliseconds. It implements Kafka's protocol and injects faults.
//	Kafka     Apache Kafka in KRaft mode, 1 or 3 nodes, from Maven Central. It needs java and mvn.
//	Connect   Kafka Connect with Debezium's PostgreSQL connector, from Maven Central.
//	Registry  Apicurio Registry, with Confluent's API, from Maven Central.
//	Postgres  initdb and postgres from this machine, or downloaded once.
//
// By default, servers listen on 127.0.0.1 only. The ports of all servers except Fake are below the
// range that the kernel uses for outgoing connections. The port of a stopped server therefore
// usually stays free for its restart. The context of a start function limits the start only. The
// server runs until Stop or Close. If this process dies before that, Linux ends its servers too. On
// other systems they keep running.
//
// Data is stored in a new temporary folder that Close removes. Only Fake can also use a folder that
// the caller names. Close does not remove such a folder, and the next start uses its data.
//
// PostgreSQL refuses to run as root. When the caller is root, it runs as user postgres or nobody,
// and that user owns the data folder.
package devstack

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// account is the user that a server runs as. Nil means the calling user.
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

// attributes returns the attributes of a command that runs as the account.
func (a *account) attributes() *syscall.SysProcAttr {
	if a == nil {
		return &syscall.SysProcAttr{}
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}}
}

// own makes the account the owner of path.
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	return os.Chown(path, a.uid, a.gid)
}

// explain adds the remedy to an error if the start of a program was not permitted. The account may
// lack the rights to enter the folder or to read the program, although root has these rights.
func (a *account) explain(err error, program, dir string) error {
	if a == nil || !errors.Is(err, os.ErrPermission) {
		return err
	}
	return fmt.Errorf("user %s cannot execute %s or cannot enter %s: open both, with all their parent folders, "+
		"to that user (chmod o+x), or choose others by PG_BINDIR and TMPDIR: %w", a.name, program, dir, err)
}

// randomName returns a unique name of lower-case letters and digits. It cannot be guessed, so it is
// used as a password too.
func randomName() string { return strings.ToLower(rand.Text()) }

// serverLog wraps w, which may be nil, so that several servers can write to it.
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

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
