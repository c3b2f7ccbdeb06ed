package readmodel

import "strings"

// Storable is text that PostgreSQL takes: valid UTF-8, without NUL.
func Storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}
