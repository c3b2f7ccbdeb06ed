package appended_test

import (
	"fmt"
	"testing"
	"time"

	"projector/readmodel/appended"
)

// clock is a clock that the test sets.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func seen(id string) appended.Seen { return appended.Seen{Key: appended.Key{Text: id}, EventID: id} }

func newCache(bytes int) (*appended.Recent, *clock) {
	c := &clock{now: time.Unix(1_000_000, 0)}
	return appended.NewRecent(func() int { return bytes }, c.Now), c
}

func mark(c *appended.Recent, ids ...string) {
	var events []appended.Seen
	for _, id := range ids {
		events = append(events, seen(id))
	}
	c.Mark(events)
}

func has(c *appended.Recent, id string) bool { return c.Check(seen(id)) }

func TestSeenUntilTheTTL(t *testing.T) {
	c, clock := newCache(1 << 20)
	if has(c, "a") {
		t.Error("seen before it was marked")
	}
	mark(c, "a")
	clock.now = clock.now.Add(time.Hour - time.Second)
	if !has(c, "a") {
		t.Error("forgotten before 3600 s")
	}
	clock.now = clock.now.Add(time.Second)
	if has(c, "a") {
		t.Error("seen after 3600 s")
	}
	mark(c, "b")
	clock.now = clock.now.Add(-24 * time.Hour)
	if has(c, "b") {
		t.Error("seen in the future")
	}
	mark(c, "c")
	c.Clear()
	if has(c, "c") {
		t.Error("seen after it was cleared")
	}
}

func TestTheSameIDAtAnotherKeyIsAnotherEvent(t *testing.T) {
	c, _ := newCache(1 << 20)
	one := appended.Seen{Key: appended.Key{Text: "acc", Number: 1}, EventID: "e"}
	c.Mark([]appended.Seen{one})
	two := one
	two.Key.Number = 2
	for s, want := range map[appended.Seen]bool{one: true, two: false, {Key: one.Key, EventID: "other"}: false} {
		if got := c.Check(s); got != want {
			t.Errorf("%v: %v, want %v", s, got, want)
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	const limit = 64 << 10
	c, _ := newCache(limit)
	for n := range 100_000 {
		mark(c, fmt.Sprintf("%036d", n))
		if c.Held() > limit+1000 {
			t.Fatalf("holds %d bytes of %d", c.Held(), limit)
		}
	}
	if !has(c, fmt.Sprintf("%036d", 99_999)) || has(c, fmt.Sprintf("%036d", 0)) {
		t.Error("the newest must be known, the oldest forgotten")
	}
}

// BenchmarkRecent looks up an event and then marks it in each iteration, as a projection does for
// events that are not redelivered.
func BenchmarkRecent(b *testing.B) {
	c := appended.NewRecent(func() int { return 32 << 20 }, time.Now)
	events := make([]appended.Seen, 1<<20)
	for i := range events {
		events[i] = seen(fmt.Sprintf("%08x-0000-4000-8000-%012x", i*7919, i))
	}
	n := 0
	for b.Loop() {
		s := events[n&(1<<20-1)]
		n++
		c.Check(s)
		c.Mark([]appended.Seen{s})
	}
}
