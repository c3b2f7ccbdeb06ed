package foureyes

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"projector/readmodel"
)

// topics are the topic and the DLQ topic that a request's command reads; empty: none. A request
// of an earlier version leaves out a topic that is the default.
func topics(model *kong.Application, arguments []string) (topic, dlqTopic string) {
	if leaf := leafOf(model, arguments); leaf != nil {
		if f := flagNamed(leaf, "topic"); f != nil {
			topic = f.Default
		}
	}
	for _, arg := range arguments {
		if arg == "--" {
			break
		}
		if value, is := strings.CutPrefix(arg, "--topic="); is {
			topic = value
		}
		if value, is := strings.CutPrefix(arg, "--dlq-topic="); is {
			dlqTopic = value
		}
	}
	if topic != "" {
		dlqTopic = cmp.Or(dlqTopic, topic+".dlq")
	}
	return topic, dlqTopic
}

// CommandLine is the command of a request for a shell, which runs it as it was typed. Its files
// are named as they were: without them it fails, and does nothing else.
func CommandLine(c *readmodel.RequestedCommand) string {
	files := make([]string, len(c.Files))
	for i, f := range c.Files {
		files[i] = "--" + f.Flag + "=" + f.Name
	}
	words := []string{"projector"}
	for _, arg := range joined(c.Arguments, files) {
		words = append(words, quoted(arg))
	}
	return strings.Join(words, " ")
}

// plainWord are the characters that no shell gives a meaning.
const plainWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-"

// quoted is a word of a shell. What a terminal would not print is escaped as bash and zsh read
// it.
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
