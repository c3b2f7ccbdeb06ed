package change

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"projector/internal/cli/flags"
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
		all[i] = flags.ShellWord(word)
	}
	return strings.Join(all, " ")
}
