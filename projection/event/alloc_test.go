//go:build !race

// The race detector empties sync.Pool at random. Therefore allocations are counted only in tests
// without it.

package event_test

import (
	"testing"

	"projector/projection/event"
)

func TestDecodeAllocatesNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		format  event.Format
		message event.Message
	}{
		"json":                    {event.NewJSON(options), event.Message{Value: []byte(change())}},
		"debezium-outbox":         {debezium(t), routed()},
		"cloudevents, structured": {cloudEvents(t), structured()},
		"cloudevents, binary":     {cloudEvents(t), binary()},
		"a sign decides":          {mappedFormat(t, producerMapping()), event.Message{Value: []byte(producerEvent)}},
		"a joined account id":     {mappedFormat(t, joinedMapping()), event.Message{Value: []byte(producerEvent)}}, // one buffer of 4 KiB for about 290 ids
	} {
		var d event.Decoded
		tt.format.Decode(tt.message, &d) // fills the pool
		// The garbage collector may empty the pool. Therefore AllocsPerRun uses many runs, and its
		// result is rounded down.
		if allocs := testing.AllocsPerRun(1000, func() { tt.format.Decode(tt.message, &d) }); allocs >= 1 {
			t.Errorf("%s: %v allocations an event, want none", name, allocs)
		}
	}
}
