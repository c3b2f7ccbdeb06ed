package accountdb

import (
	"context"

	"projector/projection"
	"projector/readmodel"
)

// CustomWriter writes events into the tables of a custom projection, within the transaction that stores
// their versions. The events are in the order of their application. It may reorder the slice. It sends
// the queued statements of the transaction.
type CustomWriter func(ctx context.Context, tx *readmodel.Tx, events []projection.CustomEvent) error

// Write passes the events to the projection, if it is a custom one and there are events.
func (w CustomWriter) Write(ctx context.Context, tx *readmodel.Tx, events []projection.CustomEvent) error {
	if w == nil || len(events) == 0 {
		return nil
	}
	return w(ctx, tx, events)
}
