package errclass

import (
	"strings"
	"unicode"
)

// mask hides what may be a value in text of unknown origin: quoted runs become
// "…" and words with a digit become #. An opening quote without a partner hides
// the rest.
func mask(text string) string {
	var b strings.Builder
	for text != "" {
		switch r := rune(text[0]); {
		case isQuote(r):
			b.WriteString(`"…"`)
			text = afterQuoted(text)
		case isWord(r):
			n := wordLength(text)
			b.WriteString(maskWord(text[:n]))
			text = text[n:]
		default:
			b.WriteByte(text[0])
			text = text[1:]
		}
	}
	return b.String()
}

// afterQuoted returns what follows the quoted run that text begins with. A
// backslash inside double quotes escapes, as in %q.
func afterQuoted(text string) string {
	quote := text[0]
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quote == '"':
			i++
		case text[i] == quote:
			return text[i+1:]
		}
	}
	return ""
}

// wordLength counts letters, digits, bytes beyond ASCII and what joins them: a
// date, a decimal, an address and an apostrophe ("can't") stay one word.
func wordLength(text string) int {
	n := 0
	for n < len(text) {
		r := rune(text[n])
		if !isWord(r) && !strings.ContainsRune("'-+.@/", r) {
			break
		}
		n++
	}
	return n
}

func maskWord(word string) string {
	if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsDigit(r) || r == '@' }) {
		return "#"
	}
	return word
}

func isQuote(r rune) bool { return r == '"' || r == '\'' || r == '`' }

func isWord(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r >= 0x80
}
