package devstack

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
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
