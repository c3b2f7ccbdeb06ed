package errclass

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"
	"unicode"
)

// maxSafe bounds the text of Safe, in bytes. The limit is needed because parts of the text come
// from servers.
const maxSafe = 600

// Describer is implemented by errors that provide a text which is safe to log. SafeText contains no
// row data, no payload and no password.
type Describer interface {
	error
	SafeText() string
}

// Text is the text of an error. It contains no data, so it is its own SafeText.
type Text string

func (t Text) Error() string { return string(t) }

// SafeText implements Describer.
func (t Text) SafeText() string { return string(t) }

// WithCause returns an error with a text that contains no data, so it is its own SafeText. The error
// wraps cause, whose text is not shown.
func WithCause(text string, cause error) error { return described{Text(text), cause} }

type described struct {
	Text
	cause error
}

func (d described) Unwrap() error { return d.cause }

// Safe returns one line of text about err for logs and for people. The text has no row data,
// payload or password. It is empty for a nil error.
//
// Errors of PostgreSQL, Kafka, sockets and TLS are described by their fields. The text that
// fmt.Errorf wrote around them is kept. In the text of an error that errors.New has made, every
// quoted part and every word with a digit is masked, because pgx's encoding errors repeat the
// value. For an error of an unknown type that wraps nothing, only the name of the type is returned.
// An error of a server must be wrapped with %w, because text that was formatted with %v looks like
// text of this program.
func Safe(err error) string {
	if err == nil {
		return ""
	}
	text, _ := describe(err)
	return oneLine(text)
}

// describe returns the safe text of err. The result sure is true if the types of all errors in its
// tree are known.
func describe(err error) (text string, sure bool) {
	if text, sure, ok := knownText(err); ok {
		return text, sure
	}
	below := children(err)
	switch {
	case len(below) == 0:
		return leafText(err), false
	case isFormatted(err):
		return formattedText(err.Error(), below)
	default:
		return joinedText(below)
	}
}

// The types of fmt.Errorf and errors.New are not exported, so they are taken from sample errors.
var (
	wrapsOne  = reflect.TypeOf(fmt.Errorf("%w", io.EOF))
	wrapsMany = reflect.TypeOf(fmt.Errorf("%w %w", io.EOF, io.EOF))
	plain     = reflect.TypeOf(errors.New(""))
)

func isFormatted(err error) bool {
	t := reflect.TypeOf(err)
	return t == wrapsOne || t == wrapsMany
}

// leafText returns the text of an unknown error that wraps nothing.
func leafText(err error) string {
	if reflect.TypeOf(err) == plain {
		return mask(err.Error())
	}
	return fmt.Sprintf("error of type %T", err)
}

// formattedText replaces the full text of each wrapped error by its safe text. If all wrapped
// errors are of known types, the text between them is from this program and stays. Otherwise
// it is masked.
func formattedText(full string, wrapped []error) (string, bool) {
	var pieces, texts []string
	allSure := true
	for _, w := range wrapped {
		text, sure := describe(w)
		allSure = allSure && sure
		texts = append(texts, text)
		before, after, found := strings.Cut(full, w.Error())
		if !found { // the format changed the text of a wrapped error
			return joinedText(wrapped)
		}
		pieces, full = append(pieces, before), after
	}
	var b strings.Builder
	for i, text := range texts {
		b.WriteString(ownText(pieces[i], wrapped, allSure))
		b.WriteString(text)
	}
	b.WriteString(ownText(full, wrapped, allSure))
	return b.String(), allSure
}

// ownText returns the text that fmt.Errorf wrote around the wrapped errors. The text may
// contain a wrapped error a second time, formatted with %v.
func ownText(piece string, wrapped []error, sure bool) string {
	if !sure {
		return mask(piece)
	}
	for _, w := range wrapped {
		if text := w.Error(); text != "" && strings.Contains(piece, text) {
			again, _ := describe(w)
			piece = strings.ReplaceAll(piece, text, again)
		}
	}
	return piece
}

// joinedText lists the safe texts of several errors. Equal texts are listed once, because the
// addresses of one host often fail with the same error.
func joinedText(errs []error) (string, bool) {
	var texts []string
	seen := map[string]bool{}
	allSure := true
	for _, err := range errs {
		text, sure := describe(err)
		allSure = allSure && sure
		if !seen[text] {
			seen[text] = true
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "; "), allSure
}

// oneLine replaces control characters and bounds the length without splitting a rune.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "�"))
	if len(text) <= maxSafe {
		return text
	}
	return strings.ToValidUTF8(text[:maxSafe], "") + "…"
}

// maskable matches the quoted parts and the words of a text. A backslash inside double quotes
// escapes, as in %q. A quoted part that is not closed extends to the end of the text. A date, a
// decimal, an address and a word with an apostrophe ("can't") are one word each.
var maskable = regexp.MustCompile(`(?s)"(?:\\.|[^"\\])*(?:"|\\?$)|'[^']*(?:'|$)|` + "`[^`]*(?:`|$)" + `|[\w[:^ascii:]][\w[:^ascii:]'+.@/-]*`)

// mask hides possible values in text of unknown origin. Quoted text becomes "…", and words
// with a digit become #. After a quote that is not closed, all text is hidden.
func mask(text string) string {
	return maskable.ReplaceAllStringFunc(text, func(part string) string {
		switch {
		case strings.ContainsRune("\"'`", rune(part[0])):
			return `"…"`
		case strings.ContainsFunc(part, func(r rune) bool { return unicode.IsDigit(r) || r == '@' }):
			return "#"
		}
		return part
	})
}
