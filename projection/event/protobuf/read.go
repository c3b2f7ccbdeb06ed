package protobuf

import (
	"encoding/binary"

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
	// What is missing is for the rules of events to judge.
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
