package consumer

import (
	"context"

	"projector/projection"
)

// unsettled is a write that has failed, as far as this worker knows: the reply to its
// COMMIT may be what was lost. PostgreSQL knows better. Only the owner moves a position
// under its fence, so a row that stands where this write was to move it, under the fence
// it had then, was moved by this write.
type unsettled struct {
	flush
	from   projection.Stood
	reason error
}

// stood is how the row of a position stands.
func stood(p projection.Position) projection.Stood {
	return projection.Stood{Next: p.Next, Fence: p.Fence}
}

// summary is what there is to report of changes, without what has to be written.
func summary(c *projection.Changes) projection.Changes {
	return projection.Changes{Records: c.Records, Outcomes: c.Outcomes, Healed: c.Healed, Letters: c.Letters, Overflows: c.Overflows}
}

// wasDone reports whether the write took place, by how the row stood behind it. A flush
// that moves no offset cannot be told from none.
func (u *unsettled) wasDone(row projection.Stood) bool {
	return row.Fence == u.from.Fence && row.Next == u.next.Offset && u.next.Offset != u.from.Next
}

// settle finds out what became of a write that has failed, from how a claim has found
// the position row, whatever then became of the claim: it has waited for the row, so no
// COMMIT is under way any more. What is durable is counted, once.
func (w *worker) settle(row projection.Stood) {
	u := w.unsettled
	if u == nil {
		return
	}
	w.unsettled = nil
	if u.wasDone(row) {
		w.log.Info("the last write took place: only the answer to it was lost", "position", u.next.Offset)
		w.durable(&u.flush)
	}
	w.trace.Dropped(u.reason)
}

// wasWritten settles a write that has failed behind another attempt at it, which found
// that the position has moved.
func (w *worker) wasWritten(ctx context.Context) bool {
	u := w.unsettled
	if u == nil {
		return false
	}
	rows, err := w.c.cfg.Database.Positions(ctx)
	if err != nil {
		return false
	}
	for i := range rows {
		row := &rows[i]
		if row.Partition == w.partition && u.wasDone(stood(row.Position)) {
			w.flushed(&u.flush)
			return true
		}
	}
	return false
}
