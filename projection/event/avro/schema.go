package avro

import (
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
