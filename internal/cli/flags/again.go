package flags

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"projector/readmodel"
)

// defaultTopic is the topic of a command that is typed without --topic.
const defaultTopic = "account-events"

// Again returns the flags with which another command chooses the same topic, projection and group,
// each after a space. Defaults are left out. Every text that proposes a command repeats these flags,
// because without them the command would change another reader, or none.
func (f *GroupFlags) Again(topic string) string {
	text := ""
	if topic != defaultTopic && topic != "" {
		text += " --topic=" + ShellWord(topic)
	}
	switch {
	case f.ProjectionFile.Given():
		text += " --projection-file=" + ShellWord(f.ProjectionFile.String())
	case f.Projection != "" && f.Projection != readmodel.BalanceName:
		text += " --projection=" + ShellWord(f.Projection)
	}
	if f.GroupName() != (&GroupFlags{Projection: f.Projection}).GroupName() {
		text += " --group=" + ShellWord(f.Group)
	}
	return text
}

// ReaderOf returns the flags with which another command chooses the same topic, projection and group
// as the command leaf, each after a space. Defaults are left out.
func ReaderOf(leaf *kong.Node) string {
	var (
		of    GroupFlags
		topic string
	)
	for _, f := range slices.Concat(leaf.AllFlags(false)...) {
		switch f.Name {
		case "topic":
			topic = f.Target.String()
		case "projection":
			of.Projection = f.Target.String()
		case "projection-file":
			of.ProjectionFile, _ = f.Target.Interface().(File)
		case "group":
			of.Group = f.Target.String()
		}
	}
	return of.Again(topic)
}

// LettersAgain returns the flag with which another command chooses the same DLQ topic, after a
// space. It is empty if the name is the default for the topic.
func (f *KafkaFlags) LettersAgain() string {
	if name := f.DeadLetterTopic(); name != (&KafkaFlags{Topic: f.Topic}).DeadLetterTopic() {
		return " --dlq-topic=" + ShellWord(name)
	}
	return ""
}

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
