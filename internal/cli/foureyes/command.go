package foureyes

import (
	"encoding"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"projector/internal/cli/connect"
	"projector/internal/cli/exit"
	"projector/internal/cli/output"
	"projector/internal/cli/parse"
	"projector/readmodel"
)

// command is a command that was typed and told to change something.
type command struct {
	parsed        *kong.Context
	now           time.Time
	actor, reason string
}

// keptBytes bounds the files that are kept with a request.
const keptBytes = 64 << 20

// Local reports whether a flag says how a command reaches servers, what it asks them, or how
// it prints: by its group, or by the tag local. It is no part of a request. Whoever approves
// gives his own, so his passwords go nowhere, and no statement runs, that he has not named.
func Local(f *kong.Flag) bool {
	switch f.Name {
	case "topic", "dlq-topic":
		return false
	case "output", "memory-limit", "help":
		return true
	}
	if f.Tag != nil && f.Tag.Has("local") {
		return true
	}
	return f.Group != nil && slices.Contains([]string{"Kafka", "PostgreSQL", "Log", "Schema registry"}, f.Group.Key)
}

// Kept reports whether a flag names a file whose content belongs to the request: by the tag
// kept.
func Kept(f *kong.Flag) bool { return f.Tag != nil && f.Tag.Has("kept") }

// Changes reports whether a command changes something when it is told --yes.
func Changes(leaf *kong.Node) bool { return flagNamed(leaf, "yes") != nil }

func flagNamed(leaf *kong.Node, name string) *kong.Flag {
	for _, level := range leaf.AllFlags(false) {
		for _, f := range level {
			if f.Name == name {
				return f
			}
		}
	}
	return nil
}

// Typed makes the gate the gate of a command that somebody has typed.
func (g *Gate) Typed(parsed *kong.Context, std *output.Streams) {
	g.std = std
	leaf := parsed.Selected()
	if leaf == nil || !Changes(leaf) {
		return
	}
	g.json = textOf(flagNamed(leaf, "output")) == "json"
	g.command = &command{parsed: parsed, now: time.Now()}
	g.command.reason, g.command.actor = reasonAndActor(leaf)
}

// reasonAndActor are what a command would leave in the audit trail.
func reasonAndActor(leaf *kong.Node) (reason, actor string) {
	named := connect.ActorFlags{Actor: textOf(flagNamed(leaf, "actor"))}
	return readmodel.Storable(textOf(flagNamed(leaf, "reason"))), named.ActorName()
}

// requested is the command as it is kept: with what it was told by the environment too, and
// with times in the place of ages.
func (c *command) requested() (*readmodel.RequestedCommand, error) {
	leaf := c.parsed.Selected()
	asked := &readmodel.RequestedCommand{Arguments: strings.Fields(leaf.Path())}
	for _, level := range leaf.AllFlags(false) {
		for _, f := range level {
			if err := c.keep(asked, f); err != nil {
				return nil, err
			}
		}
	}
	asked.Arguments = append(asked.Arguments, "--actor="+c.actor)
	if len(leaf.Positional) > 0 {
		asked.Arguments = append(asked.Arguments, "--")
	}
	for _, p := range leaf.Positional {
		asked.Arguments = append(asked.Arguments, text(p.Target))
	}
	return asked, nil
}

// keep adds a flag that has a value of its own.
func (c *command) keep(asked *readmodel.RequestedCommand, f *kong.Flag) error {
	text := textOf(f)
	if Local(f) || f.Name == "yes" || f.Name == "actor" || text == f.Default && f.Name != "topic" || f.Target.IsZero() && !f.HasDefault {
		return nil
	}
	if !Kept(f) {
		text, err := c.settled(f, text)
		asked.Arguments = append(asked.Arguments, "--"+f.Name+"="+text)
		return err
	}
	content, err := contentOf(f)
	if err != nil {
		return exit.Usagef("--%s: %w", f.Name, err)
	}
	asked.Files = append(asked.Files, readmodel.RequestedFile{Flag: f.Name, Name: filepath.Base(text), Content: content})
	size := 0
	for _, file := range asked.Files {
		size += len(file.Content)
	}
	if size > keptBytes {
		return exit.Refusef("--%s: four eyes are on, and at most %d MiB of files are kept with a request; split it", f.Name, keptBytes>>20)
	}
	return nil
}

// contentOf is the content of the file that a flag names.
func contentOf(f *kong.Flag) ([]byte, error) {
	file, ok := f.Target.Addr().Interface().(*parse.File)
	switch {
	case !ok:
		return nil, errors.New("holds no file") // a test in internal/cli finds such a flag
	case file.Stdin():
		return nil, errors.New("standard input cannot be kept with a request: name a file")
	}
	return file.Read()
}

// settled is the value of a flag that means the same later on: an age becomes a time.
func (c *command) settled(f *kong.Flag, text string) (string, error) {
	if !slices.Contains([]string{"since", "until", "time"}, f.Name) {
		return text, nil
	}
	t, err := parse.Moment("--"+f.Name, text, c.now)
	return t.UTC().Format(time.RFC3339Nano), err
}

// textOf is the value of a flag as it can be typed; empty: none.
func textOf(f *kong.Flag) string {
	if f == nil {
		return ""
	}
	return text(f.Target)
}

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
