package mapping

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"projector/projection/event"
)

// Mapping is a file that was read.
type Mapping struct {
	event.Mapping
	lines map[event.Field]int
}

// Parse reads a mapping. Its error begins with the line, "line 3: …".
func Parse(text []byte) (*Mapping, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, at(1, "the file is empty")
	case err != nil:
		return nil, syntaxError(err)
	}
	var second yaml.Node
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, at(max(second.Line, 1), "a second document follows the first")
	}
	m := &Mapping{
		Mapping: event.Mapping{Types: map[string]event.Type{}, Places: map[event.Field]event.Place{}},
		lines:   map[event.Field]int{},
	}
	err := eachMember(document.Content[0], "the file", func(key, value *yaml.Node) error {
		switch key.Value {
		case "eventTypes":
			return eachMember(value, key.Value, m.addType)
		case "fields":
			return eachMember(value, key.Value, m.addField)
		}
		return at(key.Line, "%q is unknown; use eventTypes and fields", key.Value)
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Locate names the line that an error of event.New is about.
func (m *Mapping) Locate(err error) error {
	var conflict *event.MappingError
	if !errors.As(err, &conflict) {
		return err
	}
	for _, field := range []event.Field{conflict.Field, event.FieldData} {
		if line, ok := m.lines[field]; ok {
			return at(line, "%s", conflict.Error())
		}
	}
	return err
}

// at is an error about a line.
func at(line int, format string, args ...any) error {
	return fmt.Errorf("line %d: %w", line, fmt.Errorf(format, args...))
}

// syntaxError is what the parser says, which names the line itself.
func syntaxError(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if !strings.HasPrefix(text, "line ") {
		text = "line 1: " + text
	}
	return errors.New(text)
}

// eachMember calls read for every member of a table; name is what it is called.
func eachMember(table *yaml.Node, name string, read func(key, value *yaml.Node) error) error {
	if table.Kind != yaml.MappingNode {
		return at(table.Line, "%s is not a table of names and values", name)
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(table.Content); i += 2 {
		key, value := table.Content[i], table.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.Value == "" || key.Tag == "!!merge" {
			return at(key.Line, "%s: a name must be text", name)
		}
		if first, twice := lines[key.Value]; twice {
			return at(key.Line, "%s: %q is there twice, first in line %d", name, key.Value, first)
		}
		lines[key.Value] = key.Line
		if err := read(key, value); err != nil {
			return err
		}
	}
	return nil
}

// isText reports whether a node is one text; a number is the text of its digits.
func isText(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Tag != "!!null" && n.Value != ""
}
