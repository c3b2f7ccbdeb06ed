// Package avro reads events in Avro's binary encoding, with the schema with which they were
// written. It does no I/O, because the caller has fetched the schema.
//
//	event    Avro
//	text     string, enum
//	version  int, long
//	time     timestamp-millis, -micros, -nanos, or RFC 3339 in a string
//	amount   decimal on bytes or fixed, or digits in a string
//	data     a record, or a map of strings
//
// Each of these types may be in a union with null, which has the same meaning as null in JSON. A
// float is never an amount or a version.
package avro

import (
	"encoding/json" //nolint:depguard // the Avro library parses schemas with it
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/twmb/avro"

	"projector/projection/event"
)

// Schema reads the values that were written with one schema. It is safe for
// concurrent use.
type Schema struct{ root *place }

// maxText limits the bytes of a schema and its references. Parsing a schema of that size can
// allocate 150 MiB.
const maxText = 512 << 10

// Compile parses a schema and its references, and finds the fields that the parameter wanted names.
// A reference must come after the references to which it refers itself. An error is about the
// schema, so compiling the same schema again would fail too.
func Compile(schema string, references []string, wanted *event.Branch) (*Schema, error) {
	size := len(schema)
	for _, reference := range references {
		size += len(reference)
	}
	if size > maxText {
		return nil, fmt.Errorf("it is larger than %d bytes, its references included", maxText)
	}
	var cache avro.SchemaCache
	for i, reference := range references {
		if _, err := parse(&cache, reference); err != nil {
			return nil, fmt.Errorf("reference %d: %w", i+1, err)
		}
	}
	parsed, err := parse(&cache, schema)
	if err != nil {
		return nil, err
	}
	root, err := newGraph(parsed.Root())
	if err != nil {
		return nil, err
	}
	if !root.isEvent() {
		return nil, fmt.Errorf("is of type %s; an event must be a record, or a union of records", parsed.Root().Type)
	}
	return &Schema{places{}.of(root, wanted)}, nil
}

// isEvent reports whether each value of a type can be an event. Producers that write several event
// types into a topic register a union of their records.
func (n *node) isEvent() bool {
	if n.kind != kindUnion {
		return n.kind == kindRecord
	}
	return len(n.inner) > 0 && !slices.ContainsFunc(n.inner, func(b *node) bool { return b.kind != kindRecord })
}

// parse parses what is needed of a schema to read values, see simplify. The characters of names are
// not checked: other libraries accept more names than the specification, and a value has no names.
func parse(cache *avro.SchemaCache, schema string) (*avro.Schema, error) {
	var tree any
	if err := json.Unmarshal([]byte(schema), &tree); err != nil {
		return nil, err
	}
	simplify(tree)
	text, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	return cache.Parse(string(text), avro.WithLaxNames(nil))
}

// attributes are the attributes of a type that are needed to read values.
var attributes = map[string][]string{
	"record": {"name", "namespace", "fields"}, "error": {"name", "namespace", "fields"}, "enum": {"name", "namespace", "symbols"},
	"fixed": {"name", "namespace", "size"}, "array": {"items"}, "map": {"values"},
}

// simplify removes all attributes that are not needed to read values. Checking the default values
// takes exponential time if records refer to each other. The library refuses aliases that are also
// names, and attributes of other types, such as the name of an array. Java, and so a registry, ignores
// them. An invalid decimal is read as its underlying type, as the specification says.
func simplify(tree any) {
	switch tree := tree.(type) {
	case map[string]any:
		kind, _ := tree["type"].(string)
		needed, is := attributes[kind]
		if !is {
			needed = []string{"name"} // of a field
		}
		maps.DeleteFunc(tree, func(key string, value any) bool {
			isOfAny := slices.Contains([]string{"type", "logicalType", "precision", "scale"}, key)
			return !isOfAny && !slices.Contains(needed, key) || key == "namespace" && value == nil
		})
		if tree["logicalType"] == "decimal" && (kind == "bytes" || kind == "fixed") && !isDecimal(tree) {
			for _, key := range []string{"logicalType", "precision", "scale"} {
				delete(tree, key)
			}
		}
		for _, inner := range tree {
			simplify(inner)
		}
	case []any:
		for _, inner := range tree {
			simplify(inner)
		}
	}
}

// isDecimal reports whether the precision and the scale of a decimal are valid.
func isDecimal(tree map[string]any) bool {
	precision, _ := tree["precision"].(float64)
	scale, isNumber := tree["scale"].(float64)
	if _, given := tree["scale"]; given && !isNumber {
		return false
	}
	most := math.MaxUint16 * 1.0
	if size, is := tree["size"].(float64); is {
		most = min(most, (8*size-1)*math.Log10(2))
	}
	return precision == math.Trunc(precision) && scale == math.Trunc(scale) && precision > 0 && precision <= most && scale >= 0 && scale <= precision
}

// Read implements event.Reader. Texts in found may share memory with value.
func (s *Schema) Read(value []byte, found *event.Values) (reason string) {
	r := reading{rest: value, found: found, steps: freeSteps + stepsPerByte*len(value)}
	if r.read(s.root); r.reason == "" && len(r.rest) > 0 {
		return "something follows the record in the value"
	}
	return r.reason
}
