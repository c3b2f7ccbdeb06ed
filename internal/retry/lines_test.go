package retry_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"projector/internal/retry"
)

// The type written collects log lines. Each line has the key and the count.
type written []string

func (w *written) count(l *retry.Lines, key string, n int) {
	l.Count(key, n, func(total int) { *w = append(*w, fmt.Sprint(key, " ", total)) })
}

func (w *written) want(t *testing.T, what string, lines ...string) {
	t.Helper()
	if !slices.Equal(*w, lines) {
		t.Errorf("%s: %q, want %q", what, *w, lines)
	}
	*w = nil
}

func TestALineAKeyAndMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := written{}
		wait := func(d time.Duration) { <-time.After(d) }
		l := retry.NewLines(time.Minute, time.Minute)
		w.count(l, "a", 0)
		w.want(t, "nothing")
		w.count(l, "a", 3)
		w.want(t, "the first time", "a 3")
		wait(time.Second)
		w.count(l, "a", 1)
		w.count(l, "b", 1)
		w.want(t, "another key", "b 1")
		wait(58 * time.Second)
		w.count(l, "a", 1)
		l.Flush()
		w.want(t, "within the minute")
		wait(time.Second)
		l.Flush()
		w.want(t, "after it", "a 2")
		wait(time.Hour)
		l.Flush()
		w.want(t, "nothing new")
		w.count(l, "b", 1)
		w.count(l, "b", 4)
		w.count(l, "a", 1)
		w.want(t, "after an hour", "b 1", "a 1")
		l.End()
		l.End()
		w.want(t, "the end", "b 4")
	})
}

// TestLinesComeAtAFallingRate shows that the pauses between lines grow. It also shows that a line
// is written immediately after a quiet time.
func TestLinesComeAtAFallingRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := written{}
		l := retry.NewLines(30*time.Second, 5*time.Second, 10*time.Second, 20*time.Second)
		for second := range 100 {
			w.count(l, fmt.Sprint("at ", second), 1) // these are many other keys
			w = slices.DeleteFunc(w, func(line string) bool { return line[:2] == "at" })
			w.count(l, "x", 1)
			<-time.After(time.Second)
		}
		w.want(t, "in 100 s", "x 1", "x 5", "x 10", "x 20", "x 20", "x 20", "x 20")
		<-time.After(30 * time.Second)
		w.count(l, "x", 1)
		w.want(t, "a new incident, with the rest of the last", "x 5")
	})
}

func TestTheMemoryOfLinesIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := written{}
		l := retry.NewLines(time.Minute, time.Minute)
		for i := range 300 {
			w.count(l, fmt.Sprint(i), 1)
		}
		if len(w) != 300 {
			t.Errorf("%d lines of 300 keys", len(w))
		}
		w = nil
		w.count(l, "0", 1) // key 0 was removed, because only a limited number of keys is remembered
		w.want(t, "the first key again", "0 1")
		w.count(l, "299", 1)
		w.want(t, "the last key again")
		<-time.After(time.Minute)
		for i := range 260 {
			w.count(l, fmt.Sprint("new ", i), 1)
			if i == 100 {
				w.count(l, "new 100", 1)
			}
		}
		if len(w) != 260 || slices.Contains(w, "new 100 2") {
			t.Errorf("%d lines of 260 keys: an incident was forgotten before those that are over", len(w))
		}
	})
}
