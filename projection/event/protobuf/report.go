package protobuf

import (
	"math"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"projector/projection/event"
)

func (p *place) report(slots []slot, found *event.Values) {
	for _, w := range p.wanted {
		slots := slots[w.slot:]
		if w.oneof == nil {
			w.report(slots, found)
			continue
		}
		set := w.oneof[slots[0].set]
		if set == nil {
			continue
		}
		set.report(slots, found)
		if w.branch.HasRecord {
			found.Text(w.branch.Record, set.name)
		}
	}
}

// report sets the values of a field and of the fields inside it. The first slot is that of the field.
func (w *wantedField) report(slots []slot, found *event.Values) {
	v := &slots[0]
	switch {
	case w.items != nil:
		w.reportEntries(v, found)
	case w.presence && v.set == 0:
	case w.array:
		found.Array(w.branch)
	case w.list: // the field is a map
		if w.branch.HasField {
			found.Other(w.branch.Field)
		}
	case w.inner != nil:
		w.inner.reportMessage(slots[1:], found)
	case w.branch.HasField && !w.isMissingNumber(v):
		w.reportScalar(v, found)
	}
}

// reportEntries sets the entries of a list of messages. In Protobuf, an empty list cannot be
// distinguished from an absent one, so an absent list is reported as an empty one.
func (w *wantedField) reportEntries(v *slot, found *event.Values) {
	found.List(w.branch.Field)
	group := protowire.Number(0)
	if w.kind == protoreflect.GroupKind {
		group = w.number
	}
	slots := make([]slot, w.items.slots)
	for _, body := range v.list {
		clear(slots)
		readMessage(w.items.messageType, body, group, maxDepth, target{w.items, slots})
		found.BeginEntry()
		w.items.reportMessage(slots, found)
		found.EndEntry()
	}
}

func (p *place) reportMessage(slots []slot, found *event.Values) {
	if p.known != notKnown {
		p.reportKnown(slots, found)
		return
	}
	found.RecordAt(p.branch, p.name)
	p.report(slots, found)
}

// reportKnown sets the value of a message type that is read as a single value, such as a timestamp.
func (p *place) reportKnown(slots []slot, found *event.Values) {
	f, first, second := p.branch.Field, &slots[0], &slots[p.wanted[len(p.wanted)-1].slot]
	switch p.known {
	case knownTimestamp:
		setTimestamp(f, p.wanted[0].integer(first), p.wanted[1].integer(second), found)
	case knownDecimal:
		found.Decimal(f, first.bytes, int(p.wanted[1].integer(second)))
	case knownText:
		found.Text(f, first.text())
	default:
		p.wanted[0].reportScalar(first, found)
	}
}

func setTimestamp(f event.Field, seconds, nanos int64, found *event.Values) {
	if nanos < 0 || nanos > 999_999_999 {
		found.Other(f)
		return
	}
	// If the result would overflow, another time is set. This time is also outside the valid range,
	// so it is refused.
	const most = math.MaxInt64/1_000_000 - 1
	found.Instant(f, min(max(seconds, -most), most)*1_000_000+nanos/1000)
}

func (w *wantedField) reportScalar(v *slot, found *event.Values) {
	f := w.branch.Field
	switch {
	case w.kind == protoreflect.StringKind:
		if text := v.text(); text != "" || w.presence {
			found.Text(f, text)
		}
	case w.kind == protoreflect.EnumKind:
		w.reportEnum(v, found)
	case isUnsigned(w.kind):
		found.Unsigned(f, w.unsigned(v))
	case isSigned(w.kind):
		found.Integer(f, w.integer(v))
	case w.kind == protoreflect.BoolKind:
		found.Boolean(f, v.number != 0)
	case w.kind == protoreflect.FloatKind || w.kind == protoreflect.DoubleKind:
		found.Fraction(f)
	default:
		found.Other(f)
	}
}

// isMissingNumber reports whether the number of a field without presence is 0, and 0 is no value of
// the event's field. Without presence, a producer does not write the number 0.
func (w *wantedField) isMissingNumber(v *slot) bool {
	switch w.branch.Field {
	case event.FieldEventID, event.FieldAccountID, event.FieldOccurredAt, event.FieldCorrelationID, event.FieldCurrency:
		return !w.presence && (isUnsigned(w.kind) && w.unsigned(v) == 0 || isSigned(w.kind) && w.integer(v) == 0)
	default: // a version, a type, an amount and a part of an id may be 0
		return false
	}
}

func (w *wantedField) reportEnum(v *slot, found *event.Values) {
	n := int32(v.number) //nolint:gosec // G115: an enum has 32 bits
	name, is := w.symbols[n]
	switch {
	case n == 0 && !w.presence:
	case !is:
		found.Other(w.branch.Field)
	default:
		found.Text(w.branch.Field, name)
	}
}

func (v *slot) text() string {
	return unsafe.String(unsafe.SliceData(v.bytes), len(v.bytes)) //nolint:gosec // G103: nobody writes to it
}

func (f *field) integer(v *slot) int64 {
	n := v.number
	switch {
	case v.set == 0:
		n = f.fallback
	case f.kind == protoreflect.Sint32Kind:
		n = uint64(protowire.DecodeZigZag(n & math.MaxUint32)) //nolint:gosec // G115: its bits
	case f.kind == protoreflect.Sint64Kind:
		n = uint64(protowire.DecodeZigZag(n)) //nolint:gosec // G115: its bits
	}
	switch f.kind {
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return int64(int32(n)) //nolint:gosec // G115: its lower bits count
	default:
		return int64(n) //nolint:gosec // G115: its bits
	}
}

func (f *field) unsigned(v *slot) uint64 {
	switch {
	case v.set == 0:
		return f.fallback
	case f.kind == protoreflect.Uint32Kind || f.kind == protoreflect.Fixed32Kind:
		return v.number & math.MaxUint32
	default:
		return v.number
	}
}
