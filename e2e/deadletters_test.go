package e2e_test

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"projector/e2e/oracle"
	"projector/e2e/stream"
)

const own = "__projector."

// letterID names a dead letter: where its record stood, and its class.
type letterID struct {
	group     string
	partition int32
	offset    int64
	class     string
}

// found is a record of the DLQ topic.
type found struct {
	record oracle.Record
	added  map[string]string // by key, without __projector.
	kept   []oracle.Header
}

// repeats says how often a dead letter may be in the DLQ.
type repeats bool

const (
	exactlyOnce repeats = false
	repeated    repeats = true // a fault made some records be judged again
)

// deadLetters is a check for await: the DLQ holds the oracle's letters and no others.
func (w *world) deadLetters(o *oracle.Oracle, allow repeats) string {
	got := map[letterID][]found{}
	for _, r := range w.read(w.dlq) {
		f := split(r)
		id := letterID{f.added["errors.group"], number(f, "errors.partition"), int64(number(f, "errors.offset")), f.added["errors.class"]}
		if id.group == w.group {
			got[id] = append(got[id], f)
		}
	}
	var wrong []string
	for i := range o.Letters {
		l := &o.Letters[i]
		id := letterID{w.group, l.Record.Partition, l.Record.Offset, l.Class}
		all := got[id]
		delete(got, id)
		if len(all) == 0 || len(all) > 1 && allow == exactlyOnce {
			wrong = append(wrong, fmt.Sprintf("%+v: %d times in the DLQ", id, len(all)))
			continue
		}
		if reason := w.judgeRepeats(l, all); reason != "" {
			wrong = append(wrong, fmt.Sprintf("%+v: %s", id, reason))
		}
	}
	for id := range got {
		wrong = append(wrong, fmt.Sprintf("%+v: must not be in the DLQ", id))
	}
	if len(wrong) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d dead letters are wrong, the first of them:\n%s",
		len(wrong), len(o.Letters), strings.Join(wrong[:min(8, len(wrong))], "\n"))
}

// number reads an added header; what cannot be read matches no letter.
func number(f found, key string) int32 {
	n, err := strconv.ParseInt(f.added[key], 10, 32)
	if err != nil {
		return -1
	}
	return int32(n)
}

// split tells the headers that were added from the original's.
func split(r oracle.Record) found {
	f := found{record: r, added: map[string]string{}}
	for _, h := range r.Headers {
		name, isOwn := strings.CutPrefix(h.Key, own)
		if !isOwn {
			f.kept = append(f.kept, h)
			continue
		}
		if _, twice := f.added[name]; twice {
			f.added["twice"] = name
		}
		f.added[name] = string(h.Value)
	}
	return f
}

// judgeRepeats expects one of the records to be the letter, and the others to be
// the same but for an expected version that has risen since.
func (w *world) judgeRepeats(l *oracle.Letter, all []found) string {
	first := slices.IndexFunc(all, func(f found) bool {
		return !l.Identified || f.added["errors.expected_version"] == fmt.Sprint(l.Expected)
	})
	for i := range all {
		if reason := w.judgeLetter(l, &all[i], first >= 0 && i != first); reason != "" {
			return reason
		}
	}
	return ""
}

// judgeLetter compares one record of the DLQ with what it must be. Of a repeat the
// expected version is not looked at.
func (w *world) judgeLetter(l *oracle.Letter, f *found, repeat bool) string {
	if reason := sameBytes(l.Record, f); reason != "" {
		return reason
	}
	want := map[string]string{
		"errors.class": l.Class, "errors.topic": w.topic, "errors.group": w.group, "errors.projection": "account_balance",
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
			value = f.added[key]
		}
		if f.added[key] != value {
			return fmt.Sprintf("header %s: got %q, want %q", key, f.added[key], value)
		}
	}
	return judgeFreeHeaders(l, f, want)
}

// judgeFreeHeaders looks at the headers whose text is not prescribed.
func judgeFreeHeaders(l *oracle.Letter, f *found, want map[string]string) string {
	for key, value := range f.added {
		switch key {
		case "errors.message":
			if value == "" || strings.Contains(value, stream.Marker) {
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
		if _, there := f.added[key]; !there {
			return "header " + key + " is missing"
		}
	}
	return ""
}

// sameBytes compares what must be kept byte for byte; null is not empty.
func sameBytes(want *oracle.Record, f *found) string {
	got := f.record
	if !same(got.Key, want.Key) || !same(got.Value, want.Value) {
		return fmt.Sprintf("key or value differ: key %q, want %q", got.Key, want.Key)
	}
	kept := slices.DeleteFunc(slices.Clone(want.Headers), func(h oracle.Header) bool { return strings.HasPrefix(h.Key, own) })
	if !slices.EqualFunc(f.kept, kept, func(a, b oracle.Header) bool { return a.Key == b.Key && same(a.Value, b.Value) }) {
		return fmt.Sprintf("headers: got %q, want %q", f.kept, kept)
	}
	return ""
}

func same(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

// replays is the count that a record brought along.
func replays(r *oracle.Record) string {
	for _, h := range r.Headers {
		if h.Key == own+"errors.replays" {
			return string(h.Value)
		}
	}
	return "0"
}
