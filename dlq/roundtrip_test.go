package dlq

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"projector/projection"
	"projector/projection/event"
)

var genStamp = rapid.Custom(func(t *rapid.T) Stamp {
	return Stamp{Group: rapid.String().Draw(t, "group"), Projection: rapid.String().Draw(t, "projection")}
})

// genBytes draws nil, empty and other byte slices.
var genBytes = rapid.OneOf(rapid.Just([]byte(nil)), rapid.SliceOfN(rapid.Byte(), 0, 40))

var genHeader = rapid.Custom(func(t *rapid.T) event.Header {
	key := rapid.OneOf(
		rapid.StringN(0, 12, 30),
		rapid.SampledFrom([]string{"correlationId", "", "__debezium.context", "__projector", HeaderClass, OwnPrefix, OwnPrefix + "other"}),
	).Draw(t, "key")
	return event.Header{Key: key, Value: genBytes.Draw(t, "value")}
})

var genLetter = rapid.Custom(func(t *rapid.T) projection.DeadLetter {
	letter := projection.DeadLetter{
		Class:   rapid.SampledFrom(event.Classes()).Draw(t, "class"),
		Message: rapid.String().Draw(t, "message"),
		Record: projection.Record{
			Message: event.Message{
				Key:     genBytes.Draw(t, "key"),
				Value:   genBytes.Draw(t, "value"),
				Headers: rapid.SliceOfN(genHeader, 0, 6).Draw(t, "headers"),
			},
			Topic:     rapid.StringMatching(`[a-zA-Z0-9._-]{1,40}`).Draw(t, "topic"),
			Partition: rapid.Int32Min(0).Draw(t, "partition"),
			Offset:    rapid.Int64Min(0).Draw(t, "offset"),
			Timestamp: rapid.Int64Min(-1).Draw(t, "timestamp"),
			Replays:   rapid.IntRange(0, 1000).Draw(t, "replays"),
		},
	}
	if rapid.Bool().Draw(t, "identified") {
		letter.Identified = rapid.Bool().Draw(t, "identified")
		letter.AccountID = rapid.StringN(1, 20, 200).Draw(t, "account")
		letter.EventID = rapid.StringN(1, 20, 200).Draw(t, "event")
		letter.CorrelationID = rapid.StringN(0, 20, 200).Draw(t, "correlation")
		letter.Received = rapid.Int64().Draw(t, "received")
		if letter.Identified && rapid.Bool().Draw(t, "versioned") {
			letter.Expected = new(rapid.Int64().Draw(t, "expected"))
		}
	}
	return letter
})

var genTime = rapid.Custom(func(t *rapid.T) time.Time {
	return time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
})

func TestParseGivesBackWhatRecordWrote(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letter, stamp, at := genLetter.Draw(t, "letter"), genStamp.Draw(t, "stamp"), genTime.Draw(t, "failed at")
		letter.Record.Entry = rapid.Int32Range(0, 100).Draw(t, "entry")
		record := Record(letter, stamp, "t.dlq", at)
		record.Partition, record.Offset = 3, 99

		entry, err := Parse(record)
		if err != nil {
			t.Fatal(err)
		}
		if entry.DLQPartition != 3 || entry.DLQOffset != 99 || entry.Event != letter.Record.Entry || entry.Truncated {
			t.Fatalf("place or truncation: %+v", entry)
		}
		assertStamped(t, entry, letter, stamp, at)
		assertIdentity(t, entry, letter)
		assertOriginal(t, entry, letter.Record.Message)
	})
}

func TestHeadersNeverPileUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letter, stamp := genLetter.Draw(t, "letter"), genStamp.Draw(t, "stamp")
		first := Record(letter, stamp, "t.dlq", time.Unix(0, 0))
		start := replays(letter.Record)
		original := letter.Record.Message
		rounds := rapid.IntRange(1, 10).Draw(t, "rounds")
		for range rounds {
			entry, err := Parse(Record(letter, stamp, "t.dlq", time.Unix(0, 0)))
			if err != nil {
				t.Fatal(err)
			}
			letter.Record = replayed(t, entry)
		}
		last := Record(letter, stamp, "t.dlq", time.Unix(0, 0))
		if len(last.Headers) != len(first.Headers) {
			t.Fatalf("%d headers became %d", len(first.Headers), len(last.Headers))
		}
		entry, err := Parse(last)
		if err != nil {
			t.Fatal(err)
		}
		assertOriginal(t, entry, original)
		if entry.Replays != start+rounds {
			t.Fatalf("replays = %d, want %d", entry.Replays, start+rounds)
		}
	})
}

// The function replayed returns the record that is processed when the entry is replayed. The record
// is either made directly from the entry, or first republished to the source topic.
func replayed(t *rapid.T, entry Entry) projection.Record {
	record := projection.Record{
		Message: entry.Original(), Topic: entry.Topic, Partition: entry.Partition, Offset: entry.Offset, Timestamp: entry.Timestamp,
		Replays: entry.Replays + 1,
	}
	if rapid.Bool().Draw(t, "directly") {
		return record
	}
	sent, err := entry.Republish(entry.Topic)
	if err != nil {
		t.Fatal(err)
	}
	record.Headers = nil
	for _, h := range sent.Headers {
		record.Headers = append(record.Headers, event.Header{Key: h.Key, Value: h.Value})
	}
	record.Key, record.Value, record.Replays = sent.Key, sent.Value, 0
	return record
}

func assertStamped(t *rapid.T, entry Entry, letter projection.DeadLetter, stamp Stamp, at time.Time) {
	r := letter.Record
	if entry.Class != letter.Class || entry.Group != stamp.Group || entry.Projection != stamp.Projection {
		t.Fatalf("class or stamp: %+v", entry)
	}
	if entry.Topic != r.Topic || entry.Partition != r.Partition || entry.Offset != r.Offset || entry.Timestamp != r.Timestamp {
		t.Fatalf("source coordinates: %+v", entry)
	}
	if !entry.FailedAt.Equal(at) || entry.FailedAt.Location() != time.UTC {
		t.Fatalf("failed at %v, want %v", entry.FailedAt, at)
	}
	if len(entry.Message) > maxMessageBytes || !utf8.ValidString(entry.Message) {
		t.Fatalf("message of %d bytes", len(entry.Message))
	}
	if len(letter.Message) <= maxMessageBytes && entry.Message != letter.Message {
		t.Fatalf("message %q, want %q", entry.Message, letter.Message)
	}
}

func assertIdentity(t *rapid.T, entry Entry, letter projection.DeadLetter) {
	if entry.AccountID != letter.AccountID || entry.EventID != letter.EventID || entry.CorrelationID != letter.CorrelationID {
		t.Fatalf("ids: %+v", entry)
	}
	if !letter.Identified {
		if entry.Expected != nil || (entry.Received != nil) != (letter.Received != 0) {
			t.Fatalf("expected %v, received %v of an event that could not be read", entry.Expected, entry.Received)
		}
		return
	}
	if entry.Received == nil || *entry.Received != letter.Received {
		t.Fatalf("received %v, want %d", entry.Received, letter.Received)
	}
	if (entry.Expected == nil) != (letter.Expected == nil) || entry.Expected != nil && *entry.Expected != *letter.Expected {
		t.Fatalf("expected %v, want %v", entry.Expected, letter.Expected)
	}
}

func assertOriginal(t *rapid.T, entry Entry, original event.Message) {
	if !same(entry.Key, original.Key) || !same(entry.Value, original.Value) {
		t.Fatalf("key or value changed: %q %q", entry.Key, entry.Value)
	}
	var want []event.Header
	for _, h := range original.Headers {
		if !strings.HasPrefix(h.Key, OwnPrefix) {
			want = append(want, h)
		}
	}
	if len(want) != len(entry.Headers) {
		t.Fatalf("headers %v, want %v", entry.Headers, want)
	}
	for i, h := range want {
		if entry.Headers[i].Key != h.Key || !same(entry.Headers[i].Value, h.Value) {
			t.Fatalf("header %d is %v, want %v", i, entry.Headers[i], h)
		}
	}
}

// The function same distinguishes null from empty.
func same(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

func FuzzParse(f *testing.F) {
	for _, h := range Headers(gapLetter(), Stamp{Group: "g", Projection: "p"}, time.Unix(1, 0)) {
		f.Add(h.Key, h.Value)
	}
	f.Add(HeaderOffset, []byte("-1"))
	f.Add(HeaderPartition, []byte("2147483648"))
	f.Add(HeaderFailedAt, []byte("0000-00-00T00:00:00Z"))
	f.Add(HeaderValueSHA256, []byte("00"))
	f.Add(HeaderClass, []byte{0xff})
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		record := Record(gapLetter(), Stamp{Group: "g", Projection: "p"}, "t.dlq", time.Unix(1, 0))
		replaced := false
		for i, h := range record.Headers {
			if h.Key == key {
				record.Headers[i].Value, replaced = value, true
			}
		}
		if !replaced {
			record.Headers = append(record.Headers, kgo.RecordHeader{Key: key, Value: value})
		}
		entry, err := Parse(record)
		if err != nil {
			if !strings.Contains(err.Error(), "header") || entry.Topic != "" {
				t.Fatalf("entry %+v with error %v", entry, err)
			}
			return
		}
		if entry.Offset < 0 || entry.Partition < 0 || entry.Replays < 0 || !utf8.ValidString(entry.Message) {
			t.Fatalf("accepted %+v", entry)
		}
	})
}
