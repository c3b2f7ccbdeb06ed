package dlq

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/projection"
	"projector/projection/event"
)

func gapLetter() projection.DeadLetter {
	return projection.DeadLetter{
		Record: projection.Record{
			Message: event.Message{
				Key: []byte("acc-1"), Value: []byte(`{"version":9}`),
				Headers: []event.Header{
					{Key: "trace", Value: []byte{0, 0xff}},
					{Key: "null", Value: nil},
					{Key: HeaderClass, Value: []byte("earlier")},
					{Key: "trace", Value: []byte{}},
					{Key: HeaderReplays, Value: []byte("4")},
				},
			},
			Topic: "account-events", Partition: 7, Offset: 1234, Timestamp: 1767225600123, Replays: 2,
		},
		Class: event.VersionGap, Message: "version 9 arrived, 5 is missing",
		Identified: true, AccountID: "acc-1", EventID: "e-9", CorrelationID: "c-1", Received: 9, Expected: new(int64(5)),
	}
}

func show(headers []kgo.RecordHeader) string {
	var b strings.Builder
	for _, h := range headers {
		value := fmt.Sprintf("%q", h.Value)
		if h.Value == nil {
			value = "null"
		}
		fmt.Fprintf(&b, "%s=%s\n", h.Key, value)
	}
	return b.String()
}

func TestHeadersOfAGap(t *testing.T) {
	failedAt := time.Date(2026, 1, 1, 1, 0, 0, 5e6, time.FixedZone("CET", 3600))
	got := show(Headers(gapLetter(), Stamp{Group: "g", Projection: "account_balance"}, failedAt))
	want := `trace="\x00\xff"
null=null
trace=""
__projector.errors.class="version_gap"
__projector.errors.message="version 9 arrived, 5 is missing"
__projector.errors.topic="account-events"
__projector.errors.partition="7"
__projector.errors.offset="1234"
__projector.errors.timestamp="1767225600123"
__projector.errors.group="g"
__projector.errors.projection="account_balance"
__projector.errors.account_id="acc-1"
__projector.errors.expected_version="5"
__projector.errors.received_version="9"
__projector.errors.event_id="e-9"
__projector.errors.correlation_id="c-1"
__projector.errors.failed_at="2026-01-01T00:00:00.005Z"
__projector.errors.replays="4"
`
	if got != want {
		t.Errorf("headers:\n%s\nwant:\n%s", got, want)
	}
}

func TestIdentityHeadersOnlyWhereKnown(t *testing.T) {
	identity := []string{HeaderAccountID, HeaderExpectedVersion, HeaderReceivedVersion, HeaderEventID, HeaderCorrelationID}
	tests := []struct {
		name   string
		change func(*projection.DeadLetter)
		want   []string
	}{
		{"all known", func(*projection.DeadLetter) {}, identity},
		{
			"nothing could be read", func(l *projection.DeadLetter) {
				l.Identified, l.AccountID, l.EventID, l.CorrelationID, l.Received, l.Expected = false, "", "", "", 0, nil
			}, nil,
		},
		{
			"the account could be read, the version not", func(l *projection.DeadLetter) {
				l.Identified, l.EventID, l.Received, l.Expected = false, "", 0, nil
			}, []string{HeaderAccountID, HeaderCorrelationID},
		},
		{"no correlation", func(l *projection.DeadLetter) { l.CorrelationID = "" }, identity[:4]},
		{
			"no expected version", func(l *projection.DeadLetter) { l.Expected, l.Class = nil, event.InvalidAmount },
			[]string{HeaderAccountID, HeaderReceivedVersion, HeaderEventID, HeaderCorrelationID},
		},
		{"poison at version 0", func(l *projection.DeadLetter) { l.Expected, l.Class = new(int64(0)), event.InvalidAmount }, identity},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			letter := gapLetter()
			tt.change(&letter)
			got := show(Headers(letter, Stamp{}, time.Unix(0, 0)))
			for _, key := range identity {
				want := strings.Contains(strings.Join(tt.want, " "), key)
				if strings.Contains(got, key+"=") != want {
					t.Errorf("%s present: %v, want %v", key, !want, want)
				}
			}
		})
	}
}

func TestOwnHeadersAreUTF8AndBounded(t *testing.T) {
	letter := gapLetter()
	letter.Message = strings.Repeat("ü", 3*maxMessageBytes)
	letter.CorrelationID = "c\xff1"
	for _, h := range ownHeaders(letter, Stamp{Group: "g\xfe"}, time.Unix(0, 0)) {
		if !utf8.Valid(h.Value) {
			t.Errorf("%s is not UTF-8: %q", h.Key, h.Value)
		}
		if h.Key == HeaderMessage && (len(h.Value) > maxMessageBytes || len(h.Value) < maxMessageBytes/2) {
			t.Errorf("message has %d bytes", len(h.Value))
		}
	}
}

func TestReplaysOf(t *testing.T) {
	for value, want := range map[string]int{"0": 0, "3": 3, "": 0, "-1": 0, "x": 0, "99999999999": 0, "2147483647": 2147483647} {
		if got := ReplaysOf([]event.Header{{Key: "a"}, {Key: HeaderReplays, Value: []byte(value)}}); got != want {
			t.Errorf("ReplaysOf(%q) = %d, want %d", value, got, want)
		}
	}
	if got := ReplaysOf(nil); got != 0 {
		t.Errorf("without the header: %d", got)
	}
}

func TestTruncated(t *testing.T) {
	tests := []struct {
		cut        Cut
		key, value bool
		headers    int
	}{
		{Whole, true, true, 3},
		{WithoutValue, true, false, 3},
		{WithoutHeaders, true, false, 0},
		{WithoutKey, false, false, 0},
	}
	for _, tt := range tests {
		t.Run(tt.cut.String(), func(t *testing.T) {
			letter := gapLetter()
			letter.CorrelationID = strings.Repeat("c", 5000)
			entry, err := Parse(Truncated(letter, Stamp{Group: "g", Projection: "p"}, "t.dlq", time.Unix(0, 0), tt.cut))
			if err != nil {
				t.Fatal(err)
			}
			if (entry.Key != nil) != tt.key || (entry.Value != nil) != tt.value || len(entry.Headers) != tt.headers {
				t.Errorf("kept key %q, value %q, headers %v", entry.Key, entry.Value, entry.Headers)
			}
			assertDigests(t, entry, tt.key, tt.value)
			if entry.HeadersDropped != 3-tt.headers || entry.Replays != 4 || entry.AccountID != "acc-1" {
				t.Errorf("dropped %d, replays %d, account %q", entry.HeadersDropped, entry.Replays, entry.AccountID)
			}
			if (entry.CorrelationID == "") != (tt.cut >= WithoutHeaders) {
				t.Errorf("correlation id of %d bytes", len(entry.CorrelationID))
			}
			if _, err := entry.Republish("t"); errors.Is(err, ErrTruncated) != (tt.cut != Whole) || entry.Truncated != (tt.cut != Whole) {
				t.Errorf("truncated %v, Republish: %v", entry.Truncated, err)
			}
		})
	}
}

func assertDigests(t *testing.T, entry Entry, key, value bool) {
	t.Helper()
	// These are the digests that sha256sum returns for {"version":9} and for acc-1.
	const valueSum = "a2fdcdcf238107f7bd80b9b501f396302b1a86b8ebc8767a7c8f6e0fc4a37c8c"
	const keySum = "cf9df9b99fc0a24be13747e9ba144c730c889af804bc1abbb1be8918e5cd30e2"
	if value != (entry.ValueSHA256 == "") || !value && (entry.ValueSHA256 != valueSum || entry.ValueBytes != 13) {
		t.Errorf("value digest %q of %d bytes", entry.ValueSHA256, entry.ValueBytes)
	}
	if key != (entry.KeySHA256 == "") || !key && (entry.KeySHA256 != keySum || entry.KeyBytes != 5) {
		t.Errorf("key digest %q of %d bytes", entry.KeySHA256, entry.KeyBytes)
	}
}

func TestCuttingWhatIsNotThereLosesNothing(t *testing.T) {
	letter := gapLetter()
	letter.Record.Message = event.Message{}
	entry, err := Parse(Truncated(letter, Stamp{Group: "g", Projection: "p"}, "t.dlq", time.Unix(0, 0), WithoutKey))
	if err != nil || entry.Truncated {
		t.Errorf("truncated %v, %v", entry.Truncated, err)
	}
}

func TestParseNamesTheGarbledHeader(t *testing.T) {
	tests := map[string]string{
		HeaderClass: "", HeaderTopic: "", HeaderPartition: "-1", HeaderOffset: "1.5", HeaderTimestamp: "now",
		HeaderFailedAt: "yesterday", HeaderReplays: "-2", HeaderExpectedVersion: "", HeaderReceivedVersion: "99999999999999999999",
		HeaderAccountID: "\xff", HeaderMessage: "\xff", HeaderValueSHA256: "ab", HeaderValueBytes: "1", HeaderKeyBytes: "1", HeaderHeadersDropped: "-1",
	}
	for key, value := range tests {
		t.Run(key, func(t *testing.T) {
			record := Record(gapLetter(), Stamp{Group: "g", Projection: "p"}, "t.dlq", time.Unix(0, 0))
			set(record, key, value)
			_, err := Parse(record)
			// If a record has the length header of its key or value but not the digest header, the
			// error names the missing digest header. So the test only checks for the common prefix
			// of these two header names.
			named := strings.TrimSuffix(key, "bytes")
			if err == nil || !strings.Contains(err.Error(), named) {
				t.Errorf("%v does not name %s", err, key)
			}
			if err != nil && value != "" && strings.Contains(err.Error(), value+`"`) {
				t.Errorf("%v repeats the value", err)
			}
		})
	}
}

func TestParseRefusesForeignRecords(t *testing.T) {
	twice := Record(gapLetter(), Stamp{Group: "g", Projection: "p"}, "t.dlq", time.Unix(0, 0))
	twice.Headers = append(twice.Headers, kgo.RecordHeader{Key: HeaderOffset, Value: []byte("5")})
	for name, record := range map[string]*kgo.Record{"plain": {Value: []byte("x")}, "doubled": twice} {
		if entry, err := Parse(record); err == nil {
			t.Errorf("%s: %+v", name, entry)
		}
	}
}

func TestParsePassesOverHeadersOfALaterRelease(t *testing.T) {
	record := Record(gapLetter(), Stamp{Group: "g", Projection: "p"}, "t.dlq", time.Unix(0, 0))
	set(record, OwnPrefix+"errors.later", "1")
	set(record, HeaderClass, "later_class")
	entry, err := Parse(record)
	if err != nil || entry.Class != "later_class" || len(entry.Headers) != 3 {
		t.Errorf("%+v, %v", entry, err)
	}
}

func set(record *kgo.Record, key, value string) {
	for i, h := range record.Headers {
		if h.Key == key {
			record.Headers[i].Value = []byte(value)
			return
		}
	}
	record.Headers = append(record.Headers, kgo.RecordHeader{Key: key, Value: []byte(value)})
}
