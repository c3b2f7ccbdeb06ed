package readmodel

import (
	"context"
	"fmt"
	"testing"

	"projector/projection"
	"projector/projection/event"
)

// lookedUp is a Table that has nothing and counts what it is asked for.
type lookedUp struct {
	Table
	keys int
}

func (*lookedUp) Key(ev *event.Event) Key { return Key{Text: ev.ID} }

func (l *lookedUp) Find(_ context.Context, _ Querier, keys []Key) (map[Key]string, error) {
	l.keys += len(keys)
	return nil, nil
}

// TestEventsAreLookedUpWhereTheBreakerMayOpen, and nowhere else: it costs a query.
func TestEventsAreLookedUpWhereTheBreakerMayOpen(t *testing.T) {
	table := &lookedUp{}
	e := NewAppendProjection(AppendConfig{Table: table})
	e.counted.breaker = projection.NewBreaker(projection.BreakerRule{Window: 10, Share: 0.5}, 0, &projection.Position{})
	offset := int64(0)
	for _, chunk := range []struct{ poison, good, want int }{
		{5, 4, 9},  // it may open, were the window full
		{0, 20, 0}, // no dead letter
		{},         // flushed here
		{2, 20, 2}, // only what may be one
		{0, 20, 0},
	} {
		if chunk.poison+chunk.good == 0 {
			e.counted.breaker, e.counted.later, e.counted.roots, e.counted.blind = e.counted.afterWriting(e.entries), nil, 0, false
			e.reset()
			continue
		}
		var records []projection.DecodedRecord
		for i := range chunk.poison + chunk.good {
			r := projection.DecodedRecord{Record: projection.Record{Offset: offset}}
			r.Decoded.Identity, r.Decoded.Event.ID = event.Identified, fmt.Sprint(offset)
			if i < chunk.poison {
				r.Decoded.Fault = &event.Fault{Class: event.InvalidAmount}
			}
			records = append(records, r)
			offset++
		}
		table.keys = 0
		n, err := e.Fold(t.Context(), records, 1000)
		if n != len(records) || err != nil || table.keys != chunk.want {
			t.Errorf("%+v: %d folded, %d looked up, %v", chunk, n, table.keys, err)
		}
	}
}
