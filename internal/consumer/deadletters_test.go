package consumer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"projector/projection"
	"projector/projection/event"
)

// TestDeadLettersAreLoggedOnceAMinute shows that there is at most one line for each class and
// minute, until the consumer ends. Each line has the number of dead letters since the last line of
// the class.
func TestDeadLettersAreLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := newDeadLetterLog(slog.New(slog.NewJSONHandler(&out, nil)))
		reported := func() (lines []string) {
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
			if got := reported(); !slices.Equal(got, want) {
				t.Errorf("%s: got %q, want %q", what, got, want)
			}
		}
		letters := func(class event.Class, offsets ...int64) (list []projection.DeadLetter) {
			for _, offset := range offsets {
				list = append(list, projection.DeadLetter{Class: class, Message: "why", Record: projection.Record{Offset: offset}})
			}
			return list
		}
		l.add(nil)
		is("none")
		l.add(letters(event.MalformedPayload, 1, 2, 3))
		is("the first at once", "WARN malformed_payload 3 3 why")
		<-time.After(time.Second)
		l.add(slices.Concat(letters(event.MalformedPayload, 4), letters(event.VersionGap, 5)))
		is("another class", "WARN version_gap 1 5 why")
		<-time.After(58 * time.Second)
		l.lines.Flush()
		is("within the minute")
		l.add(letters(event.MalformedPayload, 6))
		<-time.After(time.Second)
		l.lines.Flush()
		is("after it", "WARN malformed_payload 2 6 why")
		<-time.After(59 * time.Minute)
		l.lines.Flush()
		is("nothing new")
		l.add(letters(event.VersionGap, 7))
		is("after an hour", "WARN version_gap 1 7 why")
		l.add(letters(event.VersionGap, 8, 9))
		l.lines.End()
		is("at the end", "WARN version_gap 2 9 why")
	})
}
