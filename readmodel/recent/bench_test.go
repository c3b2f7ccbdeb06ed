package recent_test

import (
	"fmt"
	"testing"

	"projector/readmodel/appended"
	"projector/readmodel/recent"
)

// BenchmarkCache looks up an event and then marks it in each iteration, as a projection does for
// events that are not redelivered.
func BenchmarkCache(b *testing.B) {
	c := recent.New(recent.Config{Bytes: func() int { return 32 << 20 }})
	events := make([]appended.Seen, 1<<20)
	for i := range events {
		events[i] = seen(fmt.Sprintf("%08x-0000-4000-8000-%012x", i*7919, i))
	}
	n := 0
	for b.Loop() {
		s := events[n&(1<<20-1)]
		n++
		if _, err := c.Check(s); err != nil {
			b.Fatal(err)
		}
		if err := c.Mark([]appended.Seen{s}); err != nil {
			b.Fatal(err)
		}
	}
}
