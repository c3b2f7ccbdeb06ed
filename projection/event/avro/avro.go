// Package avro reads events from Avro's binary encoding, by the schema they were
// written with. It is pure: who calls it has fetched the schema.
//
//	event    Avro
//	text     string, enum
//	version  int, long
//	time     timestamp-millis, -micros, -nanos, or RFC 3339 in a string
//	amount   decimal on bytes or fixed, or digits in a string
//	data     a record, or a map of strings
//
// Each may stand in a union with null, which counts as null in JSON. A float is never
// an amount or a version.
package avro

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"sync"

	"github.com/twmb/avro"

	"projector/projection/event"
)

// Schema reads the values that were written with one schema. It is safe for
// concurrent use.
type Schema struct {
	schema *avro.Schema
	record *record
	pool   sync.Pool // of *target
}

// Compile parses a schema and the schemas it refers to, those first that others of
// them refer to, and looks up what stands where. The error is about the schema, and
// lasts.
func Compile(schema string, references []string, wanted *event.Branch) (*Schema, error) {
	var cache avro.SchemaCache
	for i, reference := range references {
		if _, err := cache.Parse(reference, conversions...); err != nil {
			return nil, fmt.Errorf("reference %d: %w", i+1, err)
		}
	}
	parsed, err := cache.Parse(schema, conversions...)
	if err != nil {
		return nil, err
	}
	root := parsed.Root().ExpandReferences()
	if root.Type != typeRecord {
		return nil, fmt.Errorf("is of type %s; an event must be a record", root.Type)
	}
	s := &Schema{schema: parsed, record: newRecord(root, wanted)}
	s.pool.New = func() any { return newTarget(s.record.goType) }
	return s, nil
}

// conversions keep what the library's own would lose or make dear: an exact number
// stays exact, and a time keeps its unit.
var conversions = []avro.SchemaOpt{
	avro.CustomType{LogicalType: "decimal", Decode: func(v any, n *avro.SchemaNode) (any, error) {
		unscaled, _ := v.([]byte)
		return decimal{unscaled, n.Scale}, nil
	}},
	avro.CustomType{LogicalType: "timestamp-millis", AvroType: "long", Decode: func(v any, _ *avro.SchemaNode) (any, error) {
		n, _ := v.(int64)
		return instant(fromMillis(n)), nil
	}},
	avro.CustomType{LogicalType: "timestamp-micros", AvroType: "long", Decode: func(v any, _ *avro.SchemaNode) (any, error) {
		n, _ := v.(int64)
		return instant(n), nil
	}},
	avro.CustomType{LogicalType: "timestamp-nanos", AvroType: "long", Decode: func(v any, _ *avro.SchemaNode) (any, error) {
		n, _ := v.(int64)
		return instant(fromNanos(n)), nil
	}},
	avro.CustomType{LogicalType: "uuid"}, // stays text
}

type decimal struct {
	unscaled []byte
	scale    int
}

// instant is a time in microseconds since the Unix epoch.
type instant int64

// fromMillis turns what no microseconds can hold into a time that is out of range too.
func fromMillis(n int64) int64 {
	const most = math.MaxInt64 / 1000
	return min(max(n, -most), most) * 1000
}

// fromNanos cuts finer digits, towards the past.
func fromNanos(n int64) int64 {
	micros := n / 1000
	if n%1000 < 0 {
		micros--
	}
	return micros
}

const (
	typeRecord = "record"
	typeUnion  = "union"
	typeNull   = "null"
	typeString = "string"
	typeLong   = "long"
)

// record is how a record is decoded: into a struct made for it that has only what is
// looked for, which costs half of what maps cost.
type record struct {
	branch *event.Branch
	goType reflect.Type
	fields []field
}

// field is one field of such a struct: a string or an int64 where the schema allows
// nothing else, a pointer to another struct, or else an any.
type field struct {
	branch *event.Branch
	goType reflect.Type
	inner  *record // of a pointer
}

var (
	anyType    = reflect.TypeFor[any]()
	stringType = reflect.TypeFor[string]()
	longType   = reflect.TypeFor[int64]()
)

func newRecord(node *avro.SchemaNode, branch *event.Branch) *record {
	r := &record{branch: branch}
	var fields []reflect.StructField
	for i := range branch.Members {
		m := &branch.Members[i]
		member := memberOf(node, m.Name)
		if member == nil {
			continue
		}
		f := newField(member, &m.Branch)
		fields = append(fields, reflect.StructField{
			Name: "F" + strconv.Itoa(i), Type: f.goType, Tag: reflect.StructTag("avro:" + strconv.Quote(m.Name)),
		})
		r.fields = append(r.fields, f)
	}
	r.goType = reflect.StructOf(fields)
	return r
}

func newField(node *avro.SchemaNode, branch *event.Branch) field {
	f := field{branch: branch, goType: anyType}
	inner := orNull(node)
	switch {
	case len(branch.Members) > 0 && inner.Type == typeRecord:
		f.inner = newRecord(inner, branch)
		f.goType = reflect.PointerTo(f.inner.goType)
	case node.LogicalType != "" || len(branch.Members) > 0:
	case node.Type == typeString:
		f.goType = stringType
	case node.Type == typeLong:
		f.goType = longType
	}
	return f
}

func memberOf(node *avro.SchemaNode, name string) *avro.SchemaNode {
	for i := range node.Fields {
		if node.Fields[i].Name == name {
			return &node.Fields[i].Type
		}
	}
	return nil
}

// orNull returns the other branch of a union of two with null; any other node as it is.
func orNull(node *avro.SchemaNode) *avro.SchemaNode {
	if node.Type != typeUnion || len(node.Branches) != 2 {
		return node
	}
	for i := range node.Branches {
		if node.Branches[i].Type == typeNull {
			return &node.Branches[1-i]
		}
	}
	return node
}

// target is what a value is decoded into.
type target struct {
	pointer any
	record  reflect.Value
}

func newTarget(goType reflect.Type) *target {
	p := reflect.New(goType)
	return &target{p.Interface(), p.Elem()}
}

// decoding copies no text, and passes over what is not looked for.
var decoding = []avro.Opt{avro.AliasInput(), avro.SkipUnknown()}

// Read implements event.Reader. Texts are parts of value.
func (s *Schema) Read(value []byte, found *event.Values) (reason string) {
	t := s.pool.Get().(*target) //nolint:forcetypeassert // the pool holds nothing else
	defer s.pool.Put(t)
	t.record.SetZero()
	rest, err := s.schema.Decode(value, t.pointer, decoding...)
	var short *avro.ShortBufferError
	switch {
	case errors.As(err, &short):
		return "the value ends before its schema does"
	case err != nil:
		return "the value does not follow its schema"
	case len(rest) > 0:
		return "something follows the record in the value"
	}
	s.record.read(t.record, found)
	return ""
}

func (r *record) read(from reflect.Value, found *event.Values) {
	if r.branch.Is {
		found.Object(r.branch.Field)
	}
	for i := range r.fields {
		f, v := &r.fields[i], from.Field(i)
		switch {
		case f.goType == stringType:
			found.Text(f.branch.Field, v.String())
		case f.goType == longType:
			found.Integer(f.branch.Field, v.Int())
		case f.goType == anyType:
			read(v.Interface(), f.branch, found)
		case !v.IsNil():
			f.inner.read(v.Elem(), found)
		case f.branch.Is:
			found.Null(f.branch.Field)
		}
	}
}

// read takes over what the library has made of a place whose type is known only now.
func read(v any, branch *event.Branch, found *event.Values) {
	if members, is := v.(map[string]any); is {
		for i := range branch.Members {
			m := &branch.Members[i]
			if inner, there := members[m.Name]; there {
				read(inner, &m.Branch, found)
			}
		}
	}
	if branch.Is {
		set(v, branch.Field, found)
	}
}

func set(v any, f event.Field, found *event.Values) {
	switch v := v.(type) {
	case nil:
		found.Null(f)
	case string:
		found.Text(f, v)
	case int64:
		found.Integer(f, v)
	case int32:
		found.Integer(f, int64(v))
	case float32, float64:
		found.Fraction(f)
	case decimal:
		found.Decimal(f, v.unscaled, v.scale)
	case instant:
		found.Instant(f, int64(v))
	case map[string]any:
		found.Object(f)
	default:
		found.Other(f)
	}
}
