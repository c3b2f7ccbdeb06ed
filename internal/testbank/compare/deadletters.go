package compare

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"projector/internal/testbank"
)

const own = "__projector."

// Reader identifies the projector under test: its topic, group and projection. These names are in
// the headers of its dead letters.
type Reader struct{ Topic, Group, Projection string }

// deadLetterID identifies a dead letter by the consumer group, the partition and offset of its
// record, and its class.
type deadLetterID struct {
	group     string
	partition int32
	offset    int64
	class     string
}

// Found is a record of the DLQ topic.
type Found struct {
	Record testbank.Record
	Added  map[string]string // by header key, without the prefix __projector.
	Kept   []testbank.Header
}

// Repeats says whether a dead letter may be in the DLQ more than once.
type Repeats bool

// Repeated is for runs in which the projector may process some records again, such as tests with
// faults and the demo.
const (
	ExactlyOnce Repeats = false
	Repeated    Repeats = true
)

// DeadLetters returns "" if the DLQ topic contains exactly the dead letters that the oracle
// expects. Otherwise it describes the differences.
func (w Reader) DeadLetters(dlq []testbank.Record, o *testbank.Oracle, allow Repeats) string {
	wrong := w.WrongDeadLetters(dlq, o, allow)
	if len(wrong) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d dead letters are wrong, the first of them:\n%s",
		len(wrong), len(o.DeadLetters), strings.Join(wrong[:min(8, len(wrong))], "\n"))
}

// WrongDeadLetters describes the differences, with one entry for each wrong or missing dead letter.
func (w Reader) WrongDeadLetters(dlq []testbank.Record, o *testbank.Oracle, allow Repeats) (wrong []string) {
	got := map[deadLetterID][]Found{}
	for _, r := range dlq {
		f := Split(r)
		id := deadLetterID{f.Added["errors.group"], number(f, "errors.partition"), int64(number(f, "errors.offset")), f.Added["errors.class"]}
		if id.group == w.Group {
			got[id] = append(got[id], f)
		}
	}
	for i := range o.DeadLetters {
		l := &o.DeadLetters[i]
		id := deadLetterID{w.Group, l.Record.Partition, l.Record.Offset, l.Class}
		all := got[id]
		delete(got, id)
		if len(all) == 0 || len(all) > 1 && allow == ExactlyOnce {
			wrong = append(wrong, fmt.Sprintf("%+v: %d times in the DLQ", id, len(all)))
			continue
		}
		if reason := w.compareRepeats(l, all); reason != "" {
			wrong = append(wrong, fmt.Sprintf("%+v: %s", id, reason))
		}
	}
	for id := range got {
		wrong = append(wrong, fmt.Sprintf("%+v: must not be in the DLQ", id))
	}
	return wrong
}

// number reads an added header. An unreadable number matches no dead letter.
func number(f Found, key string) int32 {
	n, err := strconv.ParseInt(f.Added[key], 10, 32)
	if err != nil {
		return -1
	}
	return int32(n)
}

// Split separates the added headers from those of the original record.
func Split(r testbank.Record) Found {
	f := Found{Record: r, Added: map[string]string{}}
	for _, h := range r.Headers {
		name, isOwn := strings.CutPrefix(h.Key, own)
		if !isOwn {
			f.Kept = append(f.Kept, h)
			continue
		}
		if _, twice := f.Added[name]; twice {
			f.Added["twice"] = name
		}
		f.Added[name] = string(h.Value)
	}
	return f
}

// compareRepeats expects that one of the records equals the expected dead letter. The other records
// must be the same, except that their expected version may be different.
func (w Reader) compareRepeats(l *testbank.DeadLetter, all []Found) string {
	first := slices.IndexFunc(all, func(f Found) bool {
		return !l.Identified || f.Added["errors.expected_version"] == fmt.Sprint(l.Expected)
	})
	for i := range all {
		if reason := w.DeadLetter(l, &all[i], first >= 0 && i != first); reason != "" {
			return reason
		}
	}
	return ""
}

// DeadLetter compares one record of the DLQ with the expected dead letter. For a repeat it does not
// compare the expected version.
func (w Reader) DeadLetter(l *testbank.DeadLetter, f *Found, repeat bool) string {
	if reason := sameBytes(l.Record, f); reason != "" {
		return reason
	}
	want := map[string]string{
		"errors.class": l.Class, "errors.topic": w.Topic, "errors.group": w.Group, "errors.projection": w.Projection,
		"errors.partition": fmt.Sprint(l.Record.Partition), "errors.offset": fmt.Sprint(l.Record.Offset),
		"errors.timestamp": fmt.Sprint(l.Record.Timestamp), "errors.replays": replays(l.Record),
	}
	if l.Identified {
		want["errors.account_id"], want["errors.event_id"] = l.Account, l.EventID
		want["errors.expected_version"], want["errors.received_version"] = fmt.Sprint(l.Expected), fmt.Sprint(l.Received)
		if l.Correlation != "" {
			want["errors.correlation_id"] = l.Correlation
		}
	}
	for key, value := range want {
		if repeat && key == "errors.expected_version" {
			value = f.Added[key]
		}
		if f.Added[key] != value {
			return fmt.Sprintf("header %s: got %q, want %q", key, f.Added[key], value)
		}
	}
	return compareFreeHeaders(l, f, want)
}

// compareFreeHeaders checks the headers whose text is not fixed, and reports headers that must not
// be there.
func compareFreeHeaders(l *testbank.DeadLetter, f *Found, want map[string]string) string {
	for key, value := range f.Added {
		switch key {
		case "errors.message":
			if value == "" || strings.Contains(value, testbank.Marker) {
				return fmt.Sprintf("header %s: %q", key, value)
			}
		case "errors.failed_at":
			if _, err := time.Parse(time.RFC3339Nano, value); err != nil {
				return fmt.Sprintf("header %s: %q", key, value)
			}
		default:
			evidence := !l.Identified && slices.Contains([]string{
				"errors.account_id", "errors.event_id", "errors.correlation_id", "errors.received_version",
			}, key)
			if _, known := want[key]; !known && !evidence {
				return fmt.Sprintf("header %s: %q must not be there", key, value)
			}
		}
	}
	for _, key := range []string{"errors.message", "errors.failed_at"} {
		if _, there := f.Added[key]; !there {
			return "header " + key + " is missing"
		}
	}
	return ""
}

// sameBytes compares the key, the value and the headers byte for byte. A null value differs from an
// empty value.
func sameBytes(want *testbank.Record, f *Found) string {
	got := f.Record
	if !same(got.Key, want.Key) || !same(got.Value, want.Value) {
		return fmt.Sprintf("key or value differ: key %q, want %q", got.Key, want.Key)
	}
	kept := slices.DeleteFunc(slices.Clone(want.Headers), func(h testbank.Header) bool { return strings.HasPrefix(h.Key, own) })
	if !slices.EqualFunc(f.Kept, kept, func(a, b testbank.Header) bool { return a.Key == b.Key && same(a.Value, b.Value) }) {
		return fmt.Sprintf("headers: got %q, want %q", f.Kept, kept)
	}
	return ""
}

func same(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

// replays returns the replay count in the record's header. An invalid count is treated as none.
func replays(r *testbank.Record) string {
	for _, h := range r.Headers {
		if h.Key == own+"errors.replays" {
			if n, err := strconv.ParseUint(string(h.Value), 10, 31); err == nil {
				return fmt.Sprint(n)
			}
		}
	}
	return "0"
}
