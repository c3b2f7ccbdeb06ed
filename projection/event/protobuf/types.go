package protobuf

import (
	"fmt"
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

// types contains each message type and each enum of a schema once. It does not refer to data of the
// compiler, so that the compiler's memory can be freed.
type types struct {
	messages map[protoreflect.FullName]*messageType
	enums    map[protoreflect.FullName]map[int32]string
}

func (all types) of(d protoreflect.MessageDescriptor) *messageType {
	if t, is := all.messages[d.FullName()]; is {
		return t
	}
	t := &messageType{name: strings.Clone(string(d.FullName())), fields: map[protowire.Number]*field{}}
	all.messages[d.FullName()] = t // stored now, because a message may contain itself
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
	wanted []*wantedField
	// byNumber contains the wanted fields of each number, because a field can be wanted several times:
	// by its name, by its JSON name, and as a field of its oneof. A list is in byNumber only if its
	// entries are wanted.
	byNumber map[protowire.Number][]*wantedField
	byOneof  map[int][]*wantedField // what is wanted of each oneof
	slots    int                    // number of its slots, including those of nested places
}

// wantedField is a field or a oneof that is wanted itself, or that contains wanted fields.
type wantedField struct {
	*field // nil for a oneof
	branch *event.Branch
	inner  *place // for a message
	items  *place // for each message in a list whose entries are wanted
	array  bool   // a list whose entries are not wanted
	name   string // name of a field that is wanted because its oneof is; otherwise empty
	slot   int    // index of its slot among the slots of its place; the slots of inner follow
	slots  int    // number of its slots
	// oneof contains the fields of a oneof by number. They use the slots of the oneof, because only
	// one of them is set.
	oneof map[protowire.Number]*wantedField
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

// places contains each place only once. In a schema with nested oneofs, the number of ways that lead
// to a message type can grow exponentially with the size of the schema.
type places struct {
	types  types
	made   map[placeKey]*place
	oneofs int // number of the fields of all wanted oneofs
}

type placeKey struct {
	message *messageType
	branch  *event.Branch
}

// maxOneofs limits the fields of the oneofs in all places. A oneof of a message that contains itself
// is counted at each level that is wanted.
const maxOneofs = 20_000

var errOneofs = fmt.Errorf("its oneofs have more than %d fields to read", maxOneofs)

func newPlaces() *places {
	known := types{map[protoreflect.FullName]*messageType{}, map[protoreflect.FullName]map[int32]string{}}
	return &places{types: known, made: map[placeKey]*place{}}
}

func (all *places) of(d protoreflect.MessageDescriptor, wanted *event.Branch) *place {
	key := placeKey{all.types.of(d), wanted}
	if p, is := all.made[key]; is {
		return p
	}
	p := &place{messageType: key.message, branch: wanted, byNumber: map[protowire.Number][]*wantedField{}, byOneof: map[int][]*wantedField{}}
	all.made[key] = p
	if wanted.HasField && p.addKnown(d) {
		return p
	}
	for i := range wanted.Members {
		m := &wanted.Members[i]
		if oneof := d.Oneofs().ByName(protoreflect.Name(m.Name)); oneof != nil && mayBeOneof(&m.Branch) {
			p.addOneof(all, oneof, &m.Branch)
			continue
		}
		fd := d.Fields().ByName(protoreflect.Name(m.Name))
		if fd == nil {
			fd = d.Fields().ByJSONName(m.Name)
		}
		if fd != nil {
			p.add(all.field(p, fd, &m.Branch))
		}
	}
	return p
}

// mayBeOneof reports whether a oneof can be at the place of a branch. Its fields may have different
// units, so it is never an amount or another value.
func mayBeOneof(b *event.Branch) bool {
	return !b.HasField || b.Field == event.FieldData || b.Field == event.FieldEnvelope
}

// field returns a wanted field of a place.
func (all *places) field(p *place, fd protoreflect.FieldDescriptor, branch *event.Branch) *wantedField {
	w := &wantedField{field: p.fields[fd.Number()], branch: branch, array: fd.IsList() && branch.Entries == nil, slots: 1}
	if w.kind == protoreflect.EnumKind {
		w.symbols = all.types.symbols(fd.Enum())
	}
	switch {
	case w.message != nil && !w.list:
		w.inner = all.of(fd.Message(), branch)
		w.slots += w.inner.slots
	case w.message != nil && fd.IsList() && branch.Entries != nil:
		w.items = all.of(fd.Message(), branch.Entries)
	}
	return w
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
		p.add(&wantedField{field: p.fields[d.Fields().ByName(f.name).Number()], branch: p.branch, slots: 1})
	}
	return true
}

// add adds a wanted field with slots of its own.
func (p *place) add(w *wantedField) {
	p.addSlots(w)
	if !w.list || w.items != nil {
		p.byNumber[w.number] = append(p.byNumber[w.number], w)
	}
	if w.field.oneof >= 0 {
		p.byOneof[w.field.oneof] = append(p.byOneof[w.field.oneof], w)
	}
}

// addOneof adds a oneof. It is read like a field with the value of the field that is set.
func (p *place) addOneof(all *places, d protoreflect.OneofDescriptor, branch *event.Branch) {
	oneof := &wantedField{branch: branch, oneof: map[protowire.Number]*wantedField{}}
	for i := 0; i < d.Fields().Len() && all.oneofs <= maxOneofs; i++ {
		all.oneofs++
		w := all.field(p, d.Fields().Get(i), branch)
		w.name = strings.Clone(string(d.Fields().Get(i).Name()))
		w.slot = p.slots
		oneof.oneof[w.number] = w
		oneof.slots = max(oneof.slots, w.slots)
		p.byNumber[w.number] = append(p.byNumber[w.number], w)
	}
	p.addSlots(oneof)
	p.byOneof[d.Index()] = append(p.byOneof[d.Index()], oneof)
}

func (p *place) addSlots(w *wantedField) {
	w.slot = p.slots
	p.slots += w.slots
	p.wanted = append(p.wanted, w)
}

// symbols returns the names of an enum's values. If a number has two names, the first one is used.
func (all types) symbols(d protoreflect.EnumDescriptor) map[int32]string {
	if names, is := all.enums[d.FullName()]; is {
		return names
	}
	names := map[int32]string{}
	for i := range d.Values().Len() {
		v := d.Values().Get(i)
		if _, is := names[int32(v.Number())]; !is {
			names[int32(v.Number())] = strings.Clone(string(v.Name()))
		}
	}
	all.enums[d.FullName()] = names
	return names
}
