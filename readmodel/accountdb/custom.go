package accountdb

import (
	"context"

	"projector/projection"
	"projector/readmodel"
)

// CustomWriter writes events into the tables of a custom projection, within the transaction that
// stores their versions. The events are in the order in which they were applied. The function may
// reorder the slice. The function also sends the queued statements of the transaction.
type CustomWriter func(ctx context.Context, tx *readmodel.Tx, events []projection.CustomEvent) error

// Write calls w, unless w is nil or there are no events.
func (w CustomWriter) Write(ctx context.Context, tx *readmodel.Tx, events []projection.CustomEvent) error {
	if w == nil || len(events) == 0 {
		return nil
	}
	return w(ctx, tx, events)
}
