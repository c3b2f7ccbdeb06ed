package recent_test

import (
	"fmt"
	"testing"
	"time"

	"projector/readmodel/appended"
	"projector/readmodel/recent"
)

// clock is a clock that the test sets.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func seen(id string) appended.Seen { return appended.Seen{Key: appended.Key{Text: id}, EventID: id} }

func newCache(bytes int) (*recent.Cache, *clock) {
	c := &clock{now: time.Unix(1_000_000, 0)}
	return recent.New(recent.Config{Bytes: func() int { return bytes }, Now: c.Now}), c
}

func mark(t *testing.T, c *recent.Cache, ids ...string) {
	t.Helper()
	var events []appended.Seen
	for _, id := range ids {
		events = append(events, seen(id))
	}
	if err := c.Mark(events); err != nil {
		t.Fatal(err)
	}
}

func has(t *testing.T, c *recent.Cache, id string) bool {
	t.Helper()
	found, err := c.Check(seen(id))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestSeenUntilTheTTL(t *testing.T) {
	c, clock := newCache(1 << 20)
	if has(t, c, "a") {
		t.Error("seen before it was marked")
	}
	mark(t, c, "a")
	clock.now = clock.now.Add(time.Hour - time.Second)
	if !has(t, c, "a") {
		t.Error("forgotten before 3600 s")
	}
	clock.now = clock.now.Add(time.Second)
	if has(t, c, "a") {
		t.Error("seen after 3600 s")
	}
	mark(t, c, "b")
	clock.now = clock.now.Add(-24 * time.Hour)
	if has(t, c, "b") {
		t.Error("seen in the future")
	}
	mark(t, c, "c")
	c.Clear()
	if has(t, c, "c") {
		t.Error("seen after it was cleared")
	}
}

func TestTheSameIDAtAnotherKeyIsAnotherEvent(t *testing.T) {
	c, _ := newCache(1 << 20)
	one := appended.Seen{Key: appended.Key{Text: "acc", Number: 1}, EventID: "e"}
	if err := c.Mark([]appended.Seen{one}); err != nil {
		t.Fatal(err)
	}
	two := one
	two.Key.Number = 2
	for s, want := range map[appended.Seen]bool{one: true, two: false, {Key: one.Key, EventID: "other"}: false} {
		if got, _ := c.Check(s); got != want {
			t.Errorf("%v: %v, want %v", s, got, want)
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	const limit = 64 << 10
	c, _ := newCache(limit)
	for n := range 100_000 {
		mark(t, c, fmt.Sprintf("%036d", n))
		if c.Held() > limit+1000 {
			t.Fatalf("holds %d bytes of %d", c.Held(), limit)
		}
	}
	if !has(t, c, fmt.Sprintf("%036d", 99_999)) || has(t, c, fmt.Sprintf("%036d", 0)) {
		t.Error("the newest must be known, the oldest forgotten")
	}
}
