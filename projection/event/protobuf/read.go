package protobuf

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"projector/projection/event"
)

// Read implements event.Reader. The value begins with the place of its message in the
// file.
func (s *Schema) Read(value []byte, found *event.Values) (reason string) {
	m, body, reason := s.message(value)
	if reason != "" {
		return reason
	}
	decoded := dynamicpb.NewMessage(m.descriptor)
	// What is missing is for the rules of events to refuse.
	options := proto.UnmarshalOptions{AllowPartial: true, DiscardUnknown: true}
	if err := options.Unmarshal(body, decoded); err != nil {
		return "the value does not follow its schema"
	}
	if m.branch.Is {
		found.Object(m.branch.Field)
	}
	read(decoded, m.fields, found)
	return ""
}

const (
	reasonEnd     = "the value ends before its schema does"
	reasonMessage = "the value names a message that its schema does not have"
)

// message finds the message a value names: how many numbers follow, then the place
// among the messages of the file, then among those declared in that one, and so on;
// no numbers stand for the first message.
func (s *Schema) message(value []byte) (m *message, body []byte, reason string) {
	steps, n := binary.Varint(value)
	if n <= 0 {
		return nil, nil, reasonEnd
	}
	value = value[n:]
	if steps < 0 || steps == 0 && len(s.messages) == 0 {
		return nil, nil, reasonMessage
	}
	if steps == 0 {
		return s.messages[0], value, ""
	}
	level := s.messages
	for range steps {
		index, n := binary.Varint(value)
		switch {
		case n <= 0:
			return nil, nil, reasonEnd
		case index < 0 || index >= int64(len(level)):
			return nil, nil, reasonMessage
		}
		m, value = level[index], value[n:]
		level = m.inner
	}
	return m, value, ""
}

func read(m protoreflect.Message, fields []field, found *event.Values) {
	for i := range fields {
		f := &fields[i]
		if f.descriptor.HasPresence() && !m.Has(f.descriptor) {
			continue
		}
		v := m.Get(f.descriptor)
		switch {
		case f.descriptor.IsList(), f.descriptor.IsMap():
			if f.branch.Is {
				found.Other(f.branch.Field)
			}
		case f.descriptor.Message() == nil:
			if f.branch.Is {
				set(f.descriptor, v, f.branch.Field, found)
			}
		default:
			readMessage(v.Message(), f, found)
		}
	}
}

func readMessage(m protoreflect.Message, f *field, found *event.Values) {
	if f.branch.Is && setKnown(m, f.branch.Field, found) {
		return
	}
	if f.branch.Is {
		found.Object(f.branch.Field)
	}
	read(m, f.fields, found)
}

// set takes over what is no message.
func set(d protoreflect.FieldDescriptor, v protoreflect.Value, f event.Field, found *event.Values) {
	switch d.Kind() {
	case protoreflect.StringKind:
		if text := v.String(); text != "" || d.HasPresence() {
			found.Text(f, text)
		}
	case protoreflect.EnumKind:
		setEnum(d, v.Enum(), f, found)
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind, protoreflect.Fixed32Kind, protoreflect.Fixed64Kind:
		found.Unsigned(f, v.Uint())
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		found.Fraction(f)
	case protoreflect.BoolKind, protoreflect.BytesKind:
		found.Other(f)
	default:
		found.Integer(f, v.Int())
	}
}

func setEnum(d protoreflect.FieldDescriptor, n protoreflect.EnumNumber, f event.Field, found *event.Values) {
	named := d.Enum().Values().ByNumber(n)
	switch {
	case n == 0 && !d.HasPresence():
	case named == nil:
		found.Other(f)
	default:
		found.Text(f, string(named.Name()))
	}
}

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
