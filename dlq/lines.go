package dlq

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// lines reads a file line by line and passes over empty ones.
type lines struct {
	scanner *bufio.Scanner
	number  int
	text    []byte
	err     error
}

func newLines(r io.Reader) *lines {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 64<<10), maxLine)
	return &lines{scanner: s}
}

func (l *lines) next() bool {
	for l.scanner.Scan() {
		l.number++
		if l.text = bytes.TrimSpace(l.scanner.Bytes()); len(l.text) > 0 {
			return true
		}
	}
	l.err = l.scanner.Err()
	if errors.Is(l.err, bufio.ErrTooLong) {
		l.err = errors.New("is too long")
	}
	return false
}
