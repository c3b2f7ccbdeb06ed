package output

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Safe is the one exit to a terminal: it escapes what could move a cursor, hide text or
// turn its direction. Such a rune is written as \u and its code point, which is also how
// JSON escapes it, so documents keep their meaning. Lines and tabs pass. Bytes that are not
// UTF-8 become U+FFFD.
type Safe struct {
	mu      sync.Mutex
	w       io.Writer
	partial []byte // the beginning of a rune whose end is in the next write
}

// NewSafe writes to w.
func NewSafe(w io.Writer) *Safe { return &Safe{w: w} }

// Write implements io.Writer.
func (s *Safe) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	whole := slices.Concat(s.partial, text)
	s.partial = nil
	if end := wholeRunes(whole); end < len(whole) {
		s.partial = append([]byte{}, whole[end:]...)
		whole = whole[:end]
	}
	if _, err := s.w.Write(escaped(whole)); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Close writes what is left of a rune that has no end. It does not close the writer below.
func (s *Safe) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.partial) == 0 {
		return nil
	}
	s.partial = nil
	_, err := s.w.Write([]byte(string(utf8.RuneError)))
	return err
}

// Control writes a terminal's control sequence of our own to w.
func Control(w io.Writer, sequence string) { _, _ = io.WriteString(Unwrapped(w), sequence) }

// Unwrapped is the writer below a Safe: for what escapes its data itself and writes
// colours, as the log does.
func Unwrapped(w io.Writer) io.Writer {
	if safe, isSafe := w.(*Safe); isSafe {
		return safe.w
	}
	return w
}

// wholeRunes is how many bytes of text end with a whole rune.
func wholeRunes(text []byte) int {
	for back := 1; back <= min(utf8.UTFMax-1, len(text)); back++ {
		if start := len(text) - back; utf8.RuneStart(text[start]) {
			if !utf8.FullRune(text[start:]) {
				return start
			}
			break
		}
	}
	return len(text)
}

func escaped(text []byte) []byte {
	safe := true
	for i := 0; i < len(text) && safe; i++ {
		safe = text[i] == '\n' || text[i] == '\t' || text[i] >= ' ' && text[i] < 0x7f
	}
	if safe {
		return text
	}
	out := make([]byte, 0, len(text)+16)
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if text = text[size:]; IsHostile(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}

// IsHostile reports whether a rune could move a terminal's cursor, hide text or turn its
// direction: the controls but for line and tab, the line and paragraph separators, and the
// marks of direction.
func IsHostile(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case unicode.IsControl(r):
		return true
	default:
		return unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
	}
}
