// Package mapping reads the mapping file, which says how a producer writes its events. The file is
// a YAML or JSON document with three tables. docs/mapping.md describes the file, and
// docs/mapping.schema.json lets editors check it.
//
//	envelope: {path: payload, entries: legs}  # where the event is in the document
//	eventTypes:            # the producer's name: the contract's, ignored, or by the sign of the amount
//	  MoneyDeposited: FundsCredited
//	  movement: {positive: FundsCredited, negative: FundsDebited, zero: ignored}
//	fields:                # the contract's name: where the field is and how it is written
//	  version: meta.seq    # a path in the document
//	  currency: [iso.code] # a path as a list, for names with points
//	  accountId: {key: true}
//	  correlationId: {header: x-trace-id}
//	  occurredAt: {path: meta.ts, unit: ms}
//	  amount: {path: cents, unit: minor}
//
// A field or type that the file does not name is read as if there were no mapping, except that a
// custom projection may ignore the type. Errors name the line and the column.
package mapping

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"projector/projection/event"
)

// Mapping is the content of a mapping file.
type Mapping struct {
	event.Mapping
	// Custom means that the mapping is for a custom projection, which ignores event types that the
	// mapping does not name.
	Custom bool
	// FirstVersion is the version of each account's first event. It is nil if it is not known.
	FirstVersion *int64
	nodes        map[event.Field]*yaml.Node
}

// Parse reads a mapping. Its error has one line for each mistake, such as "line 3, column 5: …".
func Parse(text []byte) (*Mapping, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, errorAt(&yaml.Node{Line: 1, Column: 1}, "the file is empty")
	case err != nil:
		return nil, syntaxError(text, err)
	}
	var second yaml.Node
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, errorAt(&yaml.Node{Line: max(second.Line, 1), Column: max(second.Column, 1)}, "a second document follows the first")
	}
	m := &Mapping{
		Mapping: event.Mapping{Types: map[string]event.Type{}, Fields: map[event.Field]event.FieldPath{}},
		nodes:   map[event.Field]*yaml.Node{},
	}
	err := eachMember(document.Content[0], "the file", func(key, value *yaml.Node) error {
		switch key.Value {
		case "eventTypes":
			return eachMember(value, key.Value, m.addType)
		case "fields":
			return eachMember(value, key.Value, m.addField)
		case "envelope":
			m.nodes[event.FieldEnvelope] = key
			return eachMember(value, key.Value, m.addEnvelope)
		}
		return errorAt(key, "%q is unknown; use eventTypes, fields and envelope", key.Value)
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Locate adds the line and column to each mistake in an error of event.New, if the file names the
// field.
func (m *Mapping) Locate(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var located []error
		for _, one := range joined.Unwrap() {
			located = append(located, m.Locate(one))
		}
		return errors.Join(located...)
	}
	var conflict *event.MappingError
	if !errors.As(err, &conflict) {
		return err
	}
	for _, field := range []event.Field{conflict.Field, event.FieldData} {
		if node, ok := m.nodes[field]; ok {
			return errorAt(node, "%s", conflict.Error())
		}
	}
	return err
}

func errorAt(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("line %d, column %d: %w", n.Line, n.Column, fmt.Errorf(format, args...))
}

// syntaxError converts an error of the YAML parser, which names only a line, to an error like those
// that errorAt returns. The parser names no line if it cannot read a character. If something is missing,
// it counts the lines from 0. The end of the file then counts as part of the last line.
func syntaxError(file []byte, err error) error {
	text, at := strings.TrimPrefix(err.Error(), "yaml: "), &yaml.Node{Column: 1}
	if _, scanErr := fmt.Sscanf(text, "line %d: ", &at.Line); scanErr == nil {
		_, text, _ = strings.Cut(text, ": ")
		if strings.HasPrefix(text, "did not find") {
			at.Line = min(at.Line+1, 1+bytes.Count(bytes.TrimRight(file, "\r\n"), []byte("\n")))
		}
	} else {
		at = firstUnreadable(file)
	}
	return errorAt(at, "%s", text)
}

// firstUnreadable returns the place of the first character that YAML does not allow.
func firstUnreadable(file []byte) *yaml.Node {
	at := &yaml.Node{Line: 1, Column: 1}
	for len(file) > 0 {
		r, size := utf8.DecodeRune(file)
		switch {
		case r == utf8.RuneError && size == 1, unicode.IsControl(r) && !strings.ContainsRune("\t\n\r\u0085", r):
			return at
		case r == '\n':
			at.Line, at.Column = at.Line+1, 1
		default:
			at.Column++
		}
		file = file[size:]
	}
	return &yaml.Node{Line: 1, Column: 1}
}

// eachMember calls the function read for every member of a table and joins the errors. The
// parameter name is the name of the table in errors.
func eachMember(table *yaml.Node, name string, read func(key, value *yaml.Node) error) error {
	if table.Kind != yaml.MappingNode {
		return errorAt(table, "%s is not a table of names and values", name)
	}
	lines := map[string]int{}
	var mistakes []error
	for i := 0; i+1 < len(table.Content); i += 2 {
		key, value := table.Content[i], table.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.Value == "" || key.Tag == "!!merge" {
			mistakes = append(mistakes, errorAt(key, "%s: a name must be text", name))
			continue
		}
		if first, twice := lines[key.Value]; twice {
			mistakes = append(mistakes, errorAt(key, "%s: %q is there twice, first in line %d", name, key.Value, first))
			continue
		}
		lines[key.Value] = key.Line
		mistakes = append(mistakes, read(key, value))
	}
	return errors.Join(mistakes...)
}

// isText reports whether a node is a text, a number, a boolean or a time, and is not empty.
func isText(n *yaml.Node) bool {
	switch n.Tag {
	case "!!str", "!!int", "!!float", "!!bool", "!!timestamp":
		return n.Kind == yaml.ScalarNode && n.Value != ""
	}
	return false
}
