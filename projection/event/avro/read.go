package avro

import (
	"errors"
	"reflect"

	"github.com/twmb/avro"

	"projector/projection/event"
)

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
