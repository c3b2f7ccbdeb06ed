package consumer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"projector/projection"
	"projector/projection/event"
)

// TestDeadLettersAreToldOnceAMinute: a line a class and minute, with all there were.
func TestDeadLettersAreToldOnceAMinute(t *testing.T) {
	var out bytes.Buffer
	log, l := slog.New(slog.NewJSONHandler(&out, nil)), deadLetterLog{}
	told := func() (lines []string) {
		for text := range strings.Lines(out.String()) {
			var line struct {
				Level, Class, Reason string
				Records              int
				Last                 struct{ Offset int64 }
			}
			if err := json.Unmarshal([]byte(text), &line); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, fmt.Sprintf("%s %s %d %d %s", line.Level, line.Class, line.Records, line.Last.Offset, line.Reason))
		}
		out.Reset()
		return lines
	}
	is := func(what string, want ...string) {
		t.Helper()
		if got := told(); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	letters := func(class event.Class, offsets ...int64) (list []projection.DeadLetter) {
		for _, offset := range offsets {
			list = append(list, projection.DeadLetter{Class: class, Message: "why", Record: projection.Record{Offset: offset}})
		}
		return list
	}
	at := time.Now()
	l.add(log, nil, at)
	is("none")
	l.add(log, letters(event.MalformedPayload, 1, 2, 3), at)
	is("the first at once", "WARN malformed_payload 3 3 why")
	l.add(log, letters(event.MalformedPayload, 4), at.Add(time.Second))
	l.add(log, letters(event.VersionGap, 5), at.Add(2*time.Second))
	is("another class", "WARN version_gap 1 5 why")
	l.tell(log, at.Add(59*time.Second), tellDeadLettersEvery)
	is("within the minute")
	l.add(log, letters(event.MalformedPayload, 6), at.Add(59*time.Second))
	l.tell(log, at.Add(time.Minute), tellDeadLettersEvery)
	is("after it", "WARN malformed_payload 2 6 why")
	l.tell(log, at.Add(time.Hour), tellDeadLettersEvery)
	is("nothing new")
	l.add(log, letters(event.VersionGap, 7), at.Add(3*time.Second))
	l.tell(log, at.Add(4*time.Second), 0)
	is("at the end", "WARN version_gap 1 7 why")
}
