package protobuf

import (
	"encoding/binary"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"projector/projection/event"
)

// Read implements event.Reader. The value begins with the indexes that identify its message type in
// the file. Texts in found may share memory with value.
func (s *Schema) Read(value []byte, found *event.Values) (reason string) {
	m, body, reason := s.message(value)
	if reason != "" {
		return reason
	}
	slots := s.slots(m.place)
	defer s.release(slots)
	if n := readMessage(m.place.messageType, body, 0, maxDepth, target{m.place, *slots}); n < 0 {
		return reasonBroken
	}
	found.RecordAt(m.place.branch, m.place.name)
	m.place.report(*slots, found)
	return ""
}

const (
	reasonEnd     = "the value ends before its schema does"
	reasonBroken  = "the value does not follow its schema"
	reasonMessage = "the value names a message that its schema does not have"
	// maxDepth limits the nesting of messages. It is the limit of Protobuf's own library.
	maxDepth = protowire.DefaultRecursionLimit
)

// message returns the message type that a value names, and the rest of the value. The value begins
// with the number of indexes. The first index selects a message of the file, the next one selects a
// message that is declared inside it, and so on. If there are no indexes, the type is the first
// message of the file.
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

// slot contains the last value of a wanted field, which is a field that the event needs.
type slot struct {
	set    protowire.Number // number of the field that is set; 0 if none is
	number uint64
	bytes  []byte
	list   [][]byte // the encoded entries, if the field is a list of entries
}

// target contains the slots for the wanted fields of a message. If the message of a field appears
// several times, all its parts are read into the same slots, because Protobuf merges them. If place
// is nil, no field is stored.
type target struct {
	*place
	slots []slot
}

// slots returns empty slots for all wanted fields of a place.
func (s *Schema) slots(p *place) *[]slot {
	slots, is := s.pool.Get().(*[]slot)
	if !is {
		slots = new([]slot)
	}
	if cap(*slots) < p.slots {
		*slots = make([]slot, p.slots)
	}
	*slots = (*slots)[:p.slots]
	return slots
}

// release clears the slots and returns them to the pool. Slots that are not cleared would keep the
// memory of their message in use.
func (s *Schema) release(slots *[]slot) {
	clear(*slots)
	s.pool.Put(slots)
}

const (
	broken  = -1 // the value cannot be read
	unknown = -2 // the value's wire type is not that of the field, so the value is skipped
)

// readMessage reads a message. If group is not 0, it reads the group with this number up to its
// end. It returns the number of bytes that it has read, or the constant broken. It stores the
// wanted fields in the target and checks all others.
func readMessage(t *messageType, b []byte, group protowire.Number, depth int, to target) int {
	if depth--; depth < 0 {
		return broken
	}
	size := len(b)
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 || number > protowire.MaxValidNumber {
			return broken
		}
		b = b[n:]
		if kind == protowire.EndGroupType {
			if number != group {
				return broken
			}
			return size - len(b)
		}
		n = unknown
		if f := t.fields[number]; f != nil {
			n = readField(f, kind, b, depth, to)
		}
		if n == unknown {
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return broken
		}
		b = b[n:]
	}
	if group != 0 { // the group does not end
		return broken
	}
	return size
}

// readField reads one value of a field. It returns the number of bytes that it has read, or one of
// the constants broken and unknown.
func readField(f *field, kind protowire.Type, b []byte, depth int, to target) int {
	switch {
	case f.message != nil:
		return readInner(f, kind, b, depth, to)
	case f.list && kind == protowire.BytesType && wireType(f.kind) != protowire.BytesType:
		return readPacked(f, b)
	case kind != wireType(f.kind):
		return unknown
	}
	var v slot
	n := broken
	switch kind {
	case protowire.VarintType:
		v.number, n = protowire.ConsumeVarint(b)
	case protowire.Fixed32Type:
		var narrow uint32
		narrow, n = protowire.ConsumeFixed32(b)
		v.number = uint64(narrow)
	case protowire.Fixed64Type:
		v.number, n = protowire.ConsumeFixed64(b)
	case protowire.BytesType:
		if v.bytes, n = protowire.ConsumeBytes(b); n >= 0 && f.utf8 && f.kind == protoreflect.StringKind && !utf8.Valid(v.bytes) {
			return broken
		}
	case protowire.StartGroupType, protowire.EndGroupType: // no scalar has these wire types
	}
	if n < 0 {
		return broken
	}
	v.set = f.number
	for _, w := range to.wantedOf(f) {
		to.slots[w.slot] = v
	}
	return n
}

func wireType(k protoreflect.Kind) protowire.Type {
	switch k {
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return protowire.Fixed32Type
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return protowire.Fixed64Type
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind:
		return protowire.BytesType
	case protoreflect.GroupKind:
		return protowire.StartGroupType
	default:
		return protowire.VarintType
	}
}

// readPacked checks a packed list, whose values are not stored.
func readPacked(f *field, b []byte) int {
	values, size := protowire.ConsumeBytes(b)
	if size < 0 {
		return broken
	}
	for len(values) > 0 {
		n := protowire.ConsumeFieldValue(f.number, wireType(f.kind), values)
		if n < 0 {
			return broken
		}
		values = values[n:]
	}
	return size
}

// readInner reads a field whose value is a message or a group. A field that is wanted several times
// is read once for each of them.
func readInner(f *field, kind protowire.Type, b []byte, depth int, to target) int {
	if kind != wireType(f.kind) {
		return unknown
	}
	wanted := to.wantedOf(f)
	if len(wanted) == 0 {
		_, n := readBody(f, kind, b, depth, target{})
		return n
	}
	n := broken
	for _, w := range wanted {
		slots := to.slotsOf(w)
		slots[0].set = f.number
		var body []byte
		if body, n = readBody(f, kind, b, depth, target{w.inner, slots[1:]}); n < 0 {
			return broken
		}
		if w.items != nil && len(slots[0].list) <= event.MostEntries { // with one more, they will be refused
			slots[0].list = append(slots[0].list, body)
		}
	}
	return n
}

// readBody reads the message or group of a field. It returns its bytes, and the number of bytes that
// it has read, or the constant broken.
func readBody(f *field, kind protowire.Type, b []byte, depth int, inner target) (body []byte, n int) {
	if kind == protowire.StartGroupType {
		if n = readMessage(f.message, b, f.number, depth, inner); n < 0 {
			return nil, broken
		}
		return b[:n], n
	}
	body, n = protowire.ConsumeBytes(b)
	if n < 0 || readMessage(f.message, body, 0, depth, inner) < 0 {
		return nil, broken
	}
	return body, n
}

// wantedOf returns what is wanted of a field. It clears the slots of the other fields of the same
// oneof, because the last field of a oneof counts.
func (t target) wantedOf(f *field) []*wantedField {
	if t.place == nil {
		return nil
	}
	if f.oneof >= 0 {
		for _, w := range t.byOneof[f.oneof] {
			if slots := t.slotsOf(w); slots[0].set != f.number {
				clear(slots)
			}
		}
	}
	return t.byNumber[f.number]
}

// slotsOf returns the slot of a wanted field and the slots of the fields inside it.
func (t target) slotsOf(w *wantedField) []slot { return t.slots[w.slot : w.slot+w.slots] }
