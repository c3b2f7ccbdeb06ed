package readmodel

import (
	"strings"
	"unicode/utf8"
)

// Storable is text that PostgreSQL takes: valid UTF-8, without NUL.
func Storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// CanStore reports whether PostgreSQL can hold the text; it knows nothing of others.
func CanStore(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }
