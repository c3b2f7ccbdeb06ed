package protobuf

import (
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"projector/projection/event"
)

type messageType struct {
	name   string // full name
	fields map[protowire.Number]*field
}

type field struct {
	number   protowire.Number
	kind     protoreflect.Kind
	list     bool         // also true for a map, whose entries are messages
	utf8     bool         // a text must be valid UTF-8
	presence bool         // an absent field is not the same as a field with the zero value
	oneof    int          // index of its oneof; -1 if there is none
	message  *messageType // type of a message, a group or a map entry
	symbols  map[int32]string
	fallback uint64 // the number that is used if the field is absent
}

// types contains each message type of a schema once. It does not refer to data of the compiler, so
// that the compiler's memory can be freed.
type types map[protoreflect.FullName]*messageType

func (all types) of(d protoreflect.MessageDescriptor) *messageType {
	if t, is := all[d.FullName()]; is {
		return t
	}
	t := &messageType{name: strings.Clone(string(d.FullName())), fields: map[protowire.Number]*field{}}
	all[d.FullName()] = t // stored now, because a message may contain itself
	for i := range d.Fields().Len() {
		fd := d.Fields().Get(i)
		t.fields[fd.Number()] = all.field(fd)
	}
	return t
}

func (all types) field(d protoreflect.FieldDescriptor) *field {
	f := &field{
		number: d.Number(), kind: d.Kind(), list: d.IsList() || d.IsMap(), utf8: enforcesUTF8(d), presence: d.HasPresence(), oneof: -1,
	}
	if o := d.ContainingOneof(); o != nil {
		f.oneof = o.Index()
	}
	switch {
	case d.Message() != nil:
		f.message = all.of(d.Message())
	case f.list:
	case isSigned(f.kind):
		f.fallback = uint64(d.Default().Int()) //nolint:gosec // G115: its bits
	case isUnsigned(f.kind):
		f.fallback = d.Default().Uint()
	}
	return f
}

func isUnsigned(k protoreflect.Kind) bool {
	switch k {
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind, protoreflect.Fixed32Kind, protoreflect.Fixed64Kind:
		return true
	default:
		return false
	}
}

func isSigned(k protoreflect.Kind) bool {
	switch k {
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind,
		protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return true
	default:
		return false
	}
}

// enforcesUTF8 reports whether Protobuf's own library requires valid UTF-8 in the field.
func enforcesUTF8(d protoreflect.FieldDescriptor) bool {
	if d.Syntax() == protoreflect.Editions {
		if f, is := d.(interface{ EnforceUTF8() bool }); is {
			return f.EnforceUTF8()
		}
	}
	return d.Syntax() == protoreflect.Proto3
}

// place is a message type together with what has to be read from its messages.
type place struct {
	*messageType
	branch *event.Branch
	known  known
	wanted []wantedField
	// byNumber and byOneof contain indexes of the slice wanted. A list is in byNumber only if its
	// entries are wanted.
	byNumber map[protowire.Number]int
	byOneof  map[int][]int
	slots    int // number of its slots, including those of nested places
}

// wantedField is a field that is wanted itself, or that contains wanted fields.
type wantedField struct {
	*field
	branch *event.Branch
	inner  *place // for a message
	items  *place // for each message in a list whose entries are wanted
	array  bool   // a list whose entries are not wanted
	slot   int    // index of its slot among the slots of its place; the slots of inner follow
}

// known says whether a message type is read as a single value, such as a timestamp.
type known uint8

const (
	notKnown known = iota
	knownTimestamp
	knownDecimal
	knownText
	knownNumber
)

// knownMessages contains the message types that are read as a single value, by name. A message type
// with such a name must also have these fields.
var knownMessages = map[protoreflect.FullName]struct {
	known  known
	fields []knownField
}{
	"google.protobuf.Timestamp":   {knownTimestamp, []knownField{{"seconds", protoreflect.Int64Kind}, {"nanos", protoreflect.Int32Kind}}},
	"confluent.type.Decimal":      {knownDecimal, []knownField{{"value", protoreflect.BytesKind}, {"scale", protoreflect.Int32Kind}}},
	"google.protobuf.StringValue": {knownText, []knownField{{"value", protoreflect.StringKind}}},
	"google.protobuf.Int64Value":  {knownNumber, []knownField{{"value", protoreflect.Int64Kind}}},
	"google.protobuf.UInt64Value": {knownNumber, []knownField{{"value", protoreflect.Uint64Kind}}},
	"google.protobuf.Int32Value":  {knownNumber, []knownField{{"value", protoreflect.Int32Kind}}},
	"google.protobuf.UInt32Value": {knownNumber, []knownField{{"value", protoreflect.Uint32Kind}}},
}

type knownField struct {
	name protoreflect.Name
	kind protoreflect.Kind
}

func newPlace(all types, d protoreflect.MessageDescriptor, wanted *event.Branch) *place {
	p := &place{messageType: all.of(d), branch: wanted, byNumber: map[protowire.Number]int{}, byOneof: map[int][]int{}}
	if wanted.HasField && p.addKnown(d) {
		return p
	}
	for i := range wanted.Members {
		m := &wanted.Members[i]
		fd := d.Fields().ByName(protoreflect.Name(m.Name))
		if fd == nil {
			fd = d.Fields().ByJSONName(m.Name)
		}
		if fd == nil {
			continue
		}
		w := wantedField{field: p.fields[fd.Number()], branch: &m.Branch, array: fd.IsList() && m.Entries == nil}
		if w.kind == protoreflect.EnumKind {
			w.symbols = symbols(fd.Enum())
		}
		switch {
		case w.message != nil && !w.list:
			w.inner = newPlace(all, fd.Message(), &m.Branch)
		case w.message != nil && fd.IsList() && m.Entries != nil:
			w.items = newPlace(all, fd.Message(), m.Entries)
		}
		p.add(w)
	}
	return p
}

// addKnown prepares the place for a message type that is read as a single value. It returns false
// if the message type has another name or other fields.
func (p *place) addKnown(d protoreflect.MessageDescriptor) bool {
	message, is := knownMessages[d.FullName()]
	if !is {
		return false
	}
	for _, f := range message.fields {
		if fd := d.Fields().ByName(f.name); fd == nil || fd.Kind() != f.kind || fd.IsList() {
			return false
		}
	}
	p.known = message.known
	for _, f := range message.fields {
		p.add(wantedField{field: p.fields[d.Fields().ByName(f.name).Number()], branch: p.branch})
	}
	return true
}

func (p *place) add(w wantedField) {
	index := len(p.wanted)
	w.slot = p.slots
	if p.slots++; w.inner != nil {
		p.slots += w.inner.slots
	}
	p.wanted = append(p.wanted, w)
	if !w.list || w.items != nil {
		p.byNumber[w.number] = index
	}
	if w.oneof >= 0 {
		p.byOneof[w.oneof] = append(p.byOneof[w.oneof], index)
	}
}

// symbols returns the names of an enum's values. If a number has two names, the first one is used.
func symbols(d protoreflect.EnumDescriptor) map[int32]string {
	all := map[int32]string{}
	for i := range d.Values().Len() {
		v := d.Values().Get(i)
		if _, is := all[int32(v.Number())]; !is {
			all[int32(v.Number())] = strings.Clone(string(v.Name()))
		}
	}
	return all
}
