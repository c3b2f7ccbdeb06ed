package devtest

import (
	"os"
	"testing"
)

// Terminal returns one side of a pseudo-terminal. Programs treat it as a terminal.
func Terminal(t *testing.T) *os.File {
	t.Helper()
	file, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}
