package protobuf

import (
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"projector/projection/event"
)

// messageType is what has to be known to read any message of one type.
type messageType struct{ fields map[protowire.Number]*field }

// field is a field of a message.
type field struct {
	number   protowire.Number
	kind     protoreflect.Kind
	list     bool         // also a map, whose entries are messages
	utf8     bool         // the text is refused when it is not UTF-8
	presence bool         // whether it is there can be known
	oneof    int          // which oneof of its message it is in; -1: none
	message  *messageType // of a message, a group or a map
	symbols  map[int32]string
	fallback uint64 // the number that counts when the field is not there
}

// types are the types of a schema, each once. They keep nothing of what was compiled.
type types map[protoreflect.FullName]*messageType

func (all types) of(d protoreflect.MessageDescriptor) *messageType {
	if t, is := all[d.FullName()]; is {
		return t
	}
	t := &messageType{fields: map[protowire.Number]*field{}}
	all[d.FullName()] = t // a message may be within itself
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

// enforcesUTF8 reports whether Protobuf's own library requires UTF-8 in the field.
func enforcesUTF8(d protoreflect.FieldDescriptor) bool {
	if d.Syntax() == protoreflect.Editions {
		if f, is := d.(interface{ EnforceUTF8() bool }); is {
			return f.EnforceUTF8()
		}
	}
	return d.Syntax() == protoreflect.Proto3
}

// place is a message in which something is wanted.
type place struct {
	*messageType
	branch *event.Branch
	known  known // which known message it is
	wanted []wantedField
	// byNumber and byOneof are which of wanted; only those of one value each, and entries.
	byNumber map[protowire.Number]int
	byOneof  map[int][]int
	slots    int // number of wanted values, nested ones included
}

// wantedField is a field whose value is wanted, or something within it.
type wantedField struct {
	*field
	branch *event.Branch
	inner  *place // of one message
	items  *place // of each of a list of messages, where entries are wanted
	array  bool   // a list where no entries are wanted
	slot   int    // where its value is, from the slots of its place on; those of inner follow
}

// known is a message that is one value, such as a timestamp.
type known uint8

const (
	notKnown known = iota
	knownTimestamp
	knownDecimal
	knownText
	knownNumber
)

// knownMessages are by name; each counts only if it has those fields.
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

// newPlace finds what is wanted of a message.
func newPlace(all types, d protoreflect.MessageDescriptor, wanted *event.Branch) *place {
	p := &place{messageType: all.of(d), branch: wanted, byNumber: map[protowire.Number]int{}, byOneof: map[int][]int{}}
	if wanted.Is && p.addKnown(d) {
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

// addKnown notes that the message is one value; false for any other, and for one
// that only has the name of such a message.
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

// symbols are the names of an enum's values. Of two with one number the first counts.
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
