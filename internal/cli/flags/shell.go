package flags

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// plainWord has characters without a special meaning in a shell.
const plainWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-"

// ShellWord quotes a word for a shell. Characters that a terminal does not print are escaped in the
// syntax of bash and zsh. A word that needs no quotes is returned unchanged.
func ShellWord(word string) string {
	switch {
	case word != "" && word[0] != '=' && strings.Trim(word, plainWord) == "":
		return word
	case utf8.ValidString(word) && !strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for i, r := range word {
		_, size := utf8.DecodeRuneInString(word[i:])
		switch {
		case r == '\'' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == utf8.RuneError || !unicode.IsPrint(r):
			for _, raw := range []byte(word[i : i+size]) {
				fmt.Fprintf(&b, `\%03o`, raw)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + "'"
}
