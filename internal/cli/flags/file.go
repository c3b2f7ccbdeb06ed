package flags

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"
)

// File is the value of a flag that names a file. For a stored request, the content is in memory,
// because the container image has no folder for temporary files.
type File struct {
	name    string
	content []byte
	held    bool
}

// FileNamed returns the file with this name.
func FileNamed(name string) File { return File{name: name} }

// UnmarshalText implements encoding.TextUnmarshaler. The text is the name of the file.
func (f *File) UnmarshalText(name []byte) error {
	*f = File{name: string(name)}
	if strings.HasPrefix(f.name, "~/") {
		f.name = kong.ExpandPath(f.name)
	}
	return nil
}

// String returns the name of the file, or "" if no file was given.
func (f File) String() string { return f.name }

// Base returns the name of the file without its folder, or "" if no file was given.
func (f File) Base() string {
	if !f.Given() {
		return ""
	}
	return filepath.Base(f.name)
}

// MarshalJSON implements json.Marshaler. It writes only the name. A request stores the content
// separately.
func (f File) MarshalJSON() ([]byte, error) { return json.Marshal(f.Base()) }

// UnmarshalJSON implements json.Unmarshaler. The file is empty until Hold sets its content, because a
// request must never read a file of this machine.
func (f *File) UnmarshalJSON(text []byte) error {
	*f = File{held: true}
	return json.Unmarshal(text, &f.name)
}

// Given reports whether a file was named.
func (f File) Given() bool { return f.name != "" }

// Hold sets the content, so the named file is not read.
func (f *File) Hold(content []byte) { f.content, f.held = content, true }

// Stdin reports whether standard input was named.
func (f File) Stdin() bool { return f.name == "-" && !f.held }

// Pipe reports whether the file can be read only once, for example because a shell has made it from
// the output of a command.
func (f File) Pipe() bool {
	if f.held {
		return false
	}
	info, err := os.Stat(f.name)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// Open opens the file for reading. A content set by Hold is read instead of the named file.
func (f File) Open() (io.ReadCloser, error) {
	if f.held {
		return io.NopCloser(bytes.NewReader(f.content)), nil
	}
	return os.Open(f.name)
}

// MostBytes is the size of the largest file that is read as a whole. The files of a request have at
// most this size together.
const MostBytes = 64 << 20

// ErrLarge means that a file is too large to be read as a whole.
var ErrLarge = fmt.Errorf("the file is larger than %d MiB", MostBytes>>20)

// Read reads the whole file. It returns ErrLarge for a large file, and for a device that never ends.
func (f File) Read() ([]byte, error) {
	opened, err := f.Open()
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(opened, MostBytes+1))
	if len(content) > MostBytes {
		content, err = nil, ErrLarge
	}
	return content, errors.Join(err, opened.Close())
}
