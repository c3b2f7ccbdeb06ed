//go:build !race

// The race detector empties sync.Pool at random, so allocations count without it only.

package event_test

import (
	"testing"

	"projector/projection/event"
)

func TestDecodeAllocatesNothing(t *testing.T) {
	f := event.NewJSON(options)
	message := event.Message{Value: []byte(change())}
	var d event.Decoded
	f.Decode(message, &d) // warm
	// The pool may be emptied by a garbage collection in between, so the average
	// of many runs is rounded down.
	if allocs := testing.AllocsPerRun(1000, func() { f.Decode(message, &d) }); allocs >= 1 {
		t.Errorf("%v allocations an event, want none", allocs)
	}
}
