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
	c.seek(one, projection.NextOffset{Offset: 10}, 1)
	c.seek(other, projection.NextOffset{Offset: 5}, 1)
	c.seek(one, projection.NextOffset{Offset: 12}, 2)
	if len(c.seeks) != 2 || c.seeks[0].w != other || c.seeks[1] != (seek{one, projection.NextOffset{Offset: 12}, 2}) {
		t.Errorf("seeks %+v", c.seeks)
	}
}
