package change

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/alecthomas/kong"
)

// words returns a command with its present options as the words of a command line.
func words(leaf *kong.Node) []string {
	all := append([]string{"projector"}, strings.Fields(leaf.Path())...)
	for _, level := range leaf.AllFlags(false) {
		for _, f := range level {
			text := text(f.Target)
			if f.Name == "yes" || text == "" || text == f.Default && f.Name != "topic" || f.Target.IsZero() && !f.HasDefault {
				continue
			}
			all = append(all, "--"+f.Name+"="+text)
		}
	}
	if len(leaf.Positional) > 0 {
		all = append(all, "--")
	}
	for _, p := range leaf.Positional {
		all = append(all, text(p.Target))
	}
	return all
}

// text returns the value of a flag in the form in which a person would type it. It returns "" if
// the flag has no value.
func text(v reflect.Value) string {
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return ""
	}
	switch value := v.Interface().(type) {
	case fmt.Stringer:
		return value.String()
	case encoding.TextMarshaler:
		marshaled, _ := value.MarshalText()
		return string(marshaled)
	}
	switch v.Kind() {
	case reflect.Pointer:
		return text(v.Elem())
	case reflect.Bool:
		if !v.Bool() {
			return ""
		}
		return strconv.FormatBool(true)
	case reflect.Slice:
		items := make([]string, v.Len())
		for i := range items {
			items[i] = text(v.Index(i))
		}
		return kong.JoinEscaped(items, ',')
	default:
		return fmt.Sprint(v.Interface())
	}
}

// commandLine quotes words for a shell.
func commandLine(words []string) string {
	all := make([]string, len(words))
	for i, word := range words {
		all[i] = quoted(word)
	}
	return strings.Join(all, " ")
}

// plainWord has characters without a special meaning in a shell.
const plainWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-"

// quoted quotes a word for a shell. Characters that a terminal does not print are escaped in the
// syntax of bash and zsh.
func quoted(word string) string {
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
