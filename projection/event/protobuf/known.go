package protobuf

import (
	"math"

	"google.golang.org/protobuf/reflect/protoreflect"

	"projector/projection/event"
)

// setKnown takes over a message that stands for one value; false for any other, and
// for one that only has the name of such a message.
func setKnown(m protoreflect.Message, f event.Field, found *event.Values) bool {
	switch m.Descriptor().FullName() {
	case "google.protobuf.Timestamp":
		return setTimestamp(m, f, found)
	case "confluent.type.Decimal":
		return setDecimal(m, f, found)
	case "google.protobuf.StringValue":
		value := fieldOf(m, "value", protoreflect.StringKind)
		if value == nil {
			return false
		}
		found.Text(f, m.Get(value).String())
		return true
	case "google.protobuf.Int64Value":
		return setNumber(m, protoreflect.Int64Kind, f, found)
	case "google.protobuf.UInt64Value":
		return setNumber(m, protoreflect.Uint64Kind, f, found)
	case "google.protobuf.Int32Value":
		return setNumber(m, protoreflect.Int32Kind, f, found)
	case "google.protobuf.UInt32Value":
		return setNumber(m, protoreflect.Uint32Kind, f, found)
	}
	return false
}

func setTimestamp(m protoreflect.Message, f event.Field, found *event.Values) bool {
	s, n := fieldOf(m, "seconds", protoreflect.Int64Kind), fieldOf(m, "nanos", protoreflect.Int32Kind)
	if s == nil || n == nil {
		return false
	}
	seconds, nanos := m.Get(s).Int(), m.Get(n).Int()
	if nanos < 0 || nanos > 999_999_999 {
		found.Other(f)
		return true
	}
	// What no microseconds can hold stays a time that is out of range.
	const most = math.MaxInt64/1_000_000 - 1
	found.Instant(f, min(max(seconds, -most), most)*1_000_000+nanos/1000)
	return true
}

func setDecimal(m protoreflect.Message, f event.Field, found *event.Values) bool {
	unscaled, scale := fieldOf(m, "value", protoreflect.BytesKind), fieldOf(m, "scale", protoreflect.Int32Kind)
	if unscaled == nil || scale == nil {
		return false
	}
	found.Decimal(f, m.Get(unscaled).Bytes(), int(m.Get(scale).Int()))
	return true
}

func setNumber(m protoreflect.Message, kind protoreflect.Kind, f event.Field, found *event.Values) bool {
	value := fieldOf(m, "value", kind)
	if value == nil {
		return false
	}
	set(value, m.Get(value), f, found)
	return true
}

// fieldOf returns a field that has one value of that kind, or nil.
func fieldOf(m protoreflect.Message, name protoreflect.Name, kind protoreflect.Kind) protoreflect.FieldDescriptor {
	d := m.Descriptor().Fields().ByName(name)
	if d == nil || d.Kind() != kind || d.IsList() {
		return nil
	}
	return d
}
