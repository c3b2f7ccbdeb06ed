package protobuf_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"projector/projection/event"
)

// FuzzProtobuf compares the decoding of any value with a simple decoder that uses no schema. If a
// field number appears more than once, the last value counts.
func FuzzProtobuf(f *testing.F) {
	f.Add(append(path(), credit()...))
	f.Add(append(path(1), plain(17, "10.25", "EUR")...))
	f.Add(append(path(2), text(nil, 1, "e-1")...))
	f.Add(append(path(0, 0), credit()...))
	subject := format(f, event.Options{FirstVersion: 1})
	f.Fuzz(func(t *testing.T, value []byte) {
		before := bytes.Clone(value)
		d := decode(subject, append([]byte{}, value...))
		if d.Skip || d.Tombstone || !bytes.Equal(value, before) || d.Fault == nil && d.Identity != event.Identified {
			t.Fatalf("%+v", d)
		}
		if d.Identity == event.Unidentified {
			return
		}
		texts, numbers := lastFields(t, afterPath(value))
		e := d.Event
		if e.ID != texts[1] || e.AccountID != texts[3] || e.Version != int64(numbers[4]) || e.Version < 1 || e.ID == "" || e.AccountID == "" {
			t.Fatalf("%+v of %v, %v", e, texts, numbers)
		}
		if d.Fault == nil && (e.Type == event.TypeNamed("FundsCredited") || e.Type == event.TypeNamed("FundsDebited")) && (e.Amount <= 0 || e.Currency.IsZero()) {
			t.Fatalf("%+v moves nothing", e)
		}
	})
}

func afterPath(value []byte) []byte {
	count, n := binary.Varint(value)
	for value = value[n:]; count > 0; count-- {
		_, n := binary.Varint(value)
		value = value[n:]
	}
	return value
}

func lastFields(t *testing.T, b []byte) (texts map[protowire.Number]string, numbers map[protowire.Number]uint64) {
	t.Helper()
	texts, numbers = map[protowire.Number]string{}, map[protowire.Number]uint64{}
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			t.Fatal("read although its wire format is broken")
		}
		size := protowire.ConsumeFieldValue(field, kind, b[n:])
		if size < 0 {
			t.Fatal("read although its wire format is broken")
		}
		switch kind {
		case protowire.BytesType:
			v, _ := protowire.ConsumeBytes(b[n:])
			texts[field] = string(v)
		case protowire.VarintType:
			numbers[field], _ = protowire.ConsumeVarint(b[n:])
		default:
		}
		b = b[n+size:]
	}
	return texts, numbers
}
