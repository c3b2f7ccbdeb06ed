package accountdb

import (
	"context"

	"projector/projection"
	"projector/readmodel"
)

// Take passes events to a custom projection, within the transaction that stores their versions. The
// events are in the order of their application. Take may reorder the slice. It sends the queued
// statements.
type Take func(ctx context.Context, tx *readmodel.Tx, events []projection.TakenEvent) error

// Events passes the events to the projection, if it is a custom one and there are events.
func (t Take) Events(ctx context.Context, tx *readmodel.Tx, events []projection.TakenEvent) error {
	if t == nil || len(events) == 0 {
		return nil
	}
	return t(ctx, tx, events)
}
