package output

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Safe is a writer that protects a terminal. It escapes characters that could move the cursor, hide
// text or change its direction, except line breaks and tabs. Such a character is written as \u and
// its code point. JSON uses the same escape, so documents keep their meaning. Bytes that are not
// UTF-8 become U+FFFD.
type Safe struct {
	mu      sync.Mutex
	w       io.Writer
	partial []byte // an incomplete rune, which the next write completes
	err     error  // the first error of w
}

// NewSafe returns a Safe that writes to w.
func NewSafe(w io.Writer) *Safe { return &Safe{w: w} }

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
		s.err = cmp.Or(s.err, err)
		return 0, err
	}
	return len(text), nil
}

// Close writes an incomplete rune as U+FFFD, and returns the first error of all writes. It does not
// close the underlying writer.
func (s *Safe) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.partial) > 0 {
		s.partial = nil
		_, err := s.w.Write([]byte(string(utf8.RuneError)))
		s.err = cmp.Or(s.err, err)
	}
	return s.err
}

// Control writes a control sequence to the terminal without escaping it.
func Control(w io.Writer, sequence string) { _, _ = io.WriteString(Unwrapped(w), sequence) }

// Unwrapped returns the writer below a Safe, for output that escapes its data itself and contains
// colours, such as the log.
func Unwrapped(w io.Writer) io.Writer {
	if safe, isSafe := w.(*Safe); isSafe {
		return safe.w
	}
	return w
}

// wholeRunes returns the length of text without an incomplete rune at its end.
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

// IsHostile reports whether a rune could move a terminal's cursor, hide text or change its
// direction. Such runes are control characters except line break and tab, line and paragraph
// separators, and direction marks.
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
