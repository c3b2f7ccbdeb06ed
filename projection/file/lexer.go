package file

import (
	"strings"
)

type kind uint8

const (
	end       kind = iota
	word           // a keyword or a name without quotes
	quoted         // a string ('…' or $$…$$), a name in double quotes, or a number
	semicolon      // ;
	opening        // (
	closing        // )
	other          // any other character, such as an operator or a comma
	parameter      // $1
	broken         // not valid in SQL; token.text says why
)

// token is a piece of SQL between white space and comments.
type token struct {
	kind       kind
	text       string
	start, end int // byte offsets
	line       int
}

// lexer splits SQL into tokens. It follows PostgreSQL with standard_conforming_strings on, which is
// the default.
type lexer struct {
	text string
	at   int
	line int
}

func (l *lexer) next() token {
	if t, unclosed := l.skipBlank(); unclosed {
		return t
	}
	t := token{start: l.at, line: l.line}
	if l.at >= len(l.text) {
		t.end = l.at
		return t
	}
	switch c := l.text[l.at]; {
	case c == '\'':
		l.quote(&t, false)
	case c == '"':
		l.quote(&t, false)
	case c == '$':
		l.dollar(&t)
	case isLetter(c):
		l.word(&t)
	case isDigit(c):
		t.kind = quoted
		l.at += span(l.text[l.at:], func(c byte) bool { return isLetter(c) || isDigit(c) })
	default:
		t.kind = kindOf(c)
		l.at++
		if t.kind == broken {
			t.text = `a backslash is outside of quotes; commands of psql are no SQL`
		}
	}
	t.end = l.at
	l.line += strings.Count(l.text[t.start:t.end], "\n")
	return t
}

func kindOf(c byte) kind {
	switch c {
	case ';':
		return semicolon
	case '(':
		return opening
	case ')':
		return closing
	case '\\':
		return broken
	default:
		return other
	}
}

// skipBlank skips white space and comments. If a comment has no end, skipBlank returns a broken
// token.
func (l *lexer) skipBlank() (t token, unclosed bool) {
	for l.at < len(l.text) {
		rest := l.text[l.at:]
		length := span(rest, isSpace)
		switch {
		case length > 0:
		case strings.HasPrefix(rest, "--"):
			length = span(rest, isNoLineEnd)
		case strings.HasPrefix(rest, "/*"):
			if length = commentLength(rest); length < 0 {
				t = token{kind: broken, text: "a comment begins here and never ends", start: l.at, end: len(l.text), line: l.line}
				l.at = len(l.text)
				return t, true
			}
		default:
			return token{}, false
		}
		l.line += strings.Count(rest[:length], "\n")
		l.at += length
	}
	return token{}, false
}

// commentLength returns the length of a comment, which may contain other comments. It returns -1 if
// the comment has no end.
func commentLength(text string) int {
	depth := 0
	for i := 0; i+1 < len(text); i++ {
		switch text[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			i++
			if depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// word reads a name or a keyword. If the word is E or e and a quote follows, the method also reads
// the string with escapes that begins with the quote.
func (l *lexer) word(t *token) {
	length := span(l.text[l.at:], func(c byte) bool { return isLetter(c) || isDigit(c) || c == '$' })
	t.kind, t.text = word, l.text[l.at:l.at+length]
	l.at += length
	if (t.text == "E" || t.text == "e") && strings.HasPrefix(l.text[l.at:], "'") {
		l.quote(t, true)
	}
}

// quote reads a string or a name in quotes. Two quotes in a row do not end the string or the name.
// A string with escapes may continue on the next line.
func (l *lexer) quote(t *token, escapes bool) {
	t.kind, t.text = quoted, ""
	mark := l.text[l.at]
	for i := l.at + 1; i < len(l.text); i++ {
		switch c := l.text[i]; {
		case c == '\\' && escapes:
			i++
		case c != mark:
		case i+1 < len(l.text) && l.text[i+1] == mark:
			i++
		default:
			l.at = i + 1
			if escapes {
				l.continued(t)
			}
			return
		}
	}
	t.kind, t.text = broken, "a quote begins here and never ends"
	l.at = len(l.text)
}

// continued reads the rest of a string with escapes that continues on another line.
func (l *lexer) continued(t *token) {
	rest, gap := l.text[l.at:], 0
	for length := -1; length != 0; gap += length {
		if length = span(rest[gap:], isSpace); length == 0 && strings.HasPrefix(rest[gap:], "--") {
			length = span(rest[gap:], isNoLineEnd)
		}
	}
	if strings.ContainsAny(rest[:gap], "\n\r") && strings.HasPrefix(rest[gap:], "'") {
		l.at += gap
		l.quote(t, true)
	}
}

// dollar reads a parameter such as $1, a string such as $tag$text$tag$, or a single dollar sign.
func (l *lexer) dollar(t *token) {
	rest := l.text[l.at:]
	tag := 1 + span(rest[1:], func(c byte) bool { return isLetter(c) || isDigit(c) })
	switch {
	case len(rest) > 1 && isDigit(rest[1]):
		t.kind, t.text = parameter, rest[:tag]
		l.at += tag
	case tag >= len(rest) || rest[tag] != '$':
		t.kind = other
		l.at++
	default:
		mark := rest[:tag+1]
		length := strings.Index(rest[len(mark):], mark)
		if length < 0 {
			t.kind, t.text = broken, "a text begins here with "+mark+" and never ends"
			l.at = len(l.text)
			return
		}
		t.kind = quoted
		l.at += length + 2*len(mark)
	}
}

// span returns the number of bytes at the start of text for which the function matches returns
// true.
func span(text string, matches func(byte) bool) int {
	for i := range len(text) {
		if !matches(text[i]) {
			return i
		}
	}
	return len(text)
}

// isNoLineEnd reports whether a comment goes on after c. PostgreSQL ends a comment at a carriage return,
// too.
func isNoLineEnd(c byte) bool { return c != '\n' && c != '\r' }

func isSpace(c byte) bool  { return strings.IndexByte(" \t\n\r\f\v", c) >= 0 }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c >= 0x80 }
