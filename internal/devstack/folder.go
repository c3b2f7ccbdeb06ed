package devstack

import (
	"crypto/rand"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

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
