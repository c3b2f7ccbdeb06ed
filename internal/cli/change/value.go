package change

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/readmodel"
)

// A request stores a change as a value: the name of its command, its options as JSON, and the files
// that the options name. The JSON does not contain the flags of servers, queries and output,
// because the approver sets these flags.

// The types Command and Unattended implement the interface command.
type command interface {
	change() Change
	fresh() Change
	adopt(Change)
}

// Of returns the change of a command, or nil if the command changes nothing.
func Of(leaf *kong.Node) Change {
	if c := commandOf(leaf); c != nil {
		return c.change()
	}
	return nil
}

func commandOf(leaf *kong.Node) command {
	c, _ := leaf.Target.Addr().Interface().(command)
	return c
}

func value(leaf *kong.Node, c Change) (*readmodel.RequestedCommand, error) {
	_, by := c.asked()
	by.Actor = by.ActorName() // set now, because the default would name the approver later
	options, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	stored, size := &readmodel.RequestedCommand{Arguments: []string{leaf.Path(), string(options)}}, 0
	for flag, file := range files(leaf) {
		if file.Stdin() {
			return nil, exit.Usagef("--%s: standard input cannot be kept with a request: name a file", flag)
		}
		if file.Pipe() {
			return nil, exit.Usagef("--%s: %s is a pipe, whose content cannot be read again to be kept with a request: name a file", flag, file)
		}
		content, err := file.Read()
		large := errors.Is(err, flags.ErrLarge)
		if err != nil && !large {
			return nil, exit.Usagef("--%s: %w", flag, err)
		}
		if size += len(content); size > flags.MostBytes || large {
			return nil, exit.Refusef("--%s: four eyes are on, and at most %d MiB of files are kept with a request; split it", flag, flags.MostBytes>>20)
		}
		stored.Files = append(stored.Files, readmodel.RequestedFile{Flag: flag, Name: file.Base(), Content: content})
	}
	return stored, nil
}

func files(leaf *kong.Node) iter.Seq2[string, *flags.File] {
	return func(yield func(string, *flags.File) bool) {
		for _, level := range leaf.AllFlags(false) {
			for _, f := range level {
				file, isFile := f.Target.Addr().Interface().(*flags.File)
				if isFile && file.Given() && !yield(f.Name, file) {
					return
				}
			}
		}
	}
}

var errForm = errors.New("was made by hand, or by another version of the program: request the change again")

// read returns the command and the change that a request stores. It refuses stored arguments that
// differ in any byte from what the program would store.
func read(model *kong.Application, arguments []string) (*kong.Node, Change, error) {
	if len(arguments) != 2 {
		return nil, nil, errForm
	}
	for _, leaf := range model.Leaves(false) {
		of := commandOf(leaf)
		if of == nil || leaf.Path() != arguments[0] {
			continue
		}
		c, options := of.fresh(), []byte(arguments[1])
		if err := json.Unmarshal(options, c); err != nil {
			return nil, nil, errForm
		}
		if again, err := json.Marshal(c); err != nil || !bytes.Equal(again, options) {
			return nil, nil, errForm
		}
		return leaf, c, nil
	}
	return nil, nil, errForm
}

// readFiles sets each file option of a command to its stored content. It reads no file of this
// machine.
func readFiles(leaf *kong.Node, stored []readmodel.RequestedFile) error {
	named := 0
	for flag, file := range files(leaf) {
		if named >= len(stored) || stored[named].Flag != flag || stored[named].Name != file.String() {
			return errForm
		}
		file.Hold(stored[named].Content)
		named++
	}
	if named < len(stored) {
		return errForm
	}
	return nil
}

// projectionFile is the name of a flag whose file contains SQL. The approver's login would run this
// SQL.
const projectionFile = "projection-file"

// checkFiles refuses a projection file that was never run, because its SQL would run with the
// approver's rights.
func checkFiles(ctx context.Context, pool *pgxpool.Pool, stored []readmodel.RequestedFile) error {
	for _, f := range stored {
		if f.Flag != projectionFile {
			continue
		}
		sum := sha256.Sum256(f.Content)
		known, err := readmodel.IsFileStored(ctx, pool, hex.EncodeToString(sum[:]))
		if err != nil {
			return err
		}
		if !known {
			return exit.Refusef("--projection-file: four eyes are on, and no projection was run from this text of %s; a request takes only the file that projector run has stored", output.Printable(f.Name))
		}
	}
	return nil
}

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
