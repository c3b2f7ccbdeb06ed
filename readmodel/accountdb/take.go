package accountdb

import (
	"context"

	"projector/projection"
	"projector/readmodel"
)

// Take passes events to a custom projection, within the transaction that makes their
// versions durable; they are in the order of their application, and it may change that. It
// sends what is queued.
type Take func(ctx context.Context, tx *readmodel.Tx, events []projection.TakenEvent) error

// Events gives the events to the projection, if it is a custom one and there are any.
func (t Take) Events(ctx context.Context, tx *readmodel.Tx, events []projection.TakenEvent) error {
	if t == nil || len(events) == 0 {
		return nil
	}
	return t(ctx, tx, events)
}
