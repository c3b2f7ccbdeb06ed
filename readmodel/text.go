package readmodel

import (
	"strings"
	"unicode/utf8"
)

// Storable returns the text in a form that PostgreSQL accepts. Invalid UTF-8 and NUL are replaced
// by U+FFFD.
func Storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// CanStore reports whether PostgreSQL can store the text, which must be valid UTF-8 without NUL.
func CanStore(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }
