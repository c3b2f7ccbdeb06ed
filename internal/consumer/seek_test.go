package consumer

import (
	"testing"

	"projector/projection"
)

// TestOnlyTheLastSeekCounts shows that only the last seek of a worker is executed if the worker
// claims its partition twice between two polls.
func TestOnlyTheLastSeekCounts(t *testing.T) {
	c := &Consumer{}
	one, other := &worker{}, &worker{}
	c.seek(seek{one, t.Context(), projection.NextOffset{Offset: 10}, 1})
	c.seek(seek{other, t.Context(), projection.NextOffset{Offset: 5}, 1})
	last := seek{one, t.Context(), projection.NextOffset{Offset: 12}, 2}
	c.seek(last)
	if len(c.seeks) != 2 || c.seeks[0].w != other || c.seeks[1] != last {
		t.Errorf("seeks %+v", c.seeks)
	}
}
