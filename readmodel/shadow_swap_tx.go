package readmodel

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"projector/projection"
	"projector/sql"
)

// swapTx is the transaction of a swap.
type swapTx struct {
	work     *swapWork
	tx       *Tx
	deadline time.Time
}

// run does all but committing.
func (t *swapTx) run(ctx context.Context) error {
	w := t.work
	if _, err := t.exec(ctx, "swap_fence"); err != nil {
		return err
	}
	positions, err := t.positions(ctx)
	if err != nil {
		return err
	}
	if _, err := t.exec(ctx, "swap_lock_accounts", w.opts.Remove); err != nil {
		return err
	}
	partitions, offsets := make([]int32, len(positions)), make([]int64, len(positions))
	for i, p := range positions {
		partitions[i], offsets[i] = p.Partition, p.Next
	}
	if err := t.choose(ctx, partitions, offsets); err != nil {
		return err
	}
	if w.done.Replaced+w.done.Removed == 0 {
		return errNothingFits
	}
	limit, number := w.opts.ParkLimit, w.number
	for _, step := range []struct {
		query string
		args  []any
	}{
		{"swap_remove", []any{number}},
		{"swap_insert", []any{number}},
		{"swap_parked_remove", []any{number, limit, partitions, offsets}},
		{"swap_parked_insert", []any{number, limit, partitions, offsets, w.ahead}},
		{"swap_overflow_remove", []any{number}},
		{"swap_overflow_insert", []any{number, limit, partitions, offsets}},
	} {
		if _, err := t.exec(ctx, step.query, step.args...); err != nil {
			return err
		}
	}
	return t.audit(ctx)
}

// positions answers where the live tables are, which they cannot leave any more.
func (t *swapTx) positions(ctx context.Context) ([]TopicPosition, error) {
	w := t.work
	if err := t.limited(ctx); err != nil {
		return nil, err
	}
	positions, err := LoadTopicPositions(ctx, t.tx, w.opts.Topic)
	if err != nil {
		return nil, err
	}
	if err := t.limited(ctx); err != nil {
		return nil, err
	}
	at, err := w.shadow.loadPositions(ctx, t.tx, w.opts.Topic)
	if err != nil {
		return nil, err
	}
	for _, p := range w.reached {
		if next, known := at[p.Partition]; !known || next < p.Next {
			return nil, &ShadowLostError{p.Partition}
		}
	}
	w.moved = !slices.Equal(positions, w.reached)
	return positions, nil
}

// choose finds out which accounts can be changed now.
func (t *swapTx) choose(ctx context.Context, partitions []int32, offsets []int64) error {
	w := t.work
	if err := t.limit(); err != nil {
		return err
	}
	args := []any{w.opts.Topic, w.number, w.opts.Remove, w.opts.Partial, partitions, offsets}
	t.tx.Queue(sql.Query("swap_choose"), args...).QueryRow(func(row pgx.Row) error {
		return row.Scan(&w.done.Replaced, &w.done.Removed, &w.done.Left)
	})
	return t.tx.Send(ctx)
}

// audit records what was changed. projection.ErrStale means that somebody has written one
// of the accounts in spite of the locks.
func (t *swapTx) audit(ctx context.Context) error {
	w := t.work
	recorded, err := t.exec(ctx, "swap_audit", w.number, w.opts.Actor)
	if err != nil {
		return err
	}
	if recorded != w.done.Replaced+w.done.Removed {
		return projection.ErrStale
	}
	return t.limited(ctx) // COMMIT
}

func (t *swapTx) exec(ctx context.Context, query string, args ...any) (rows int64, err error) {
	if err := t.limit(); err != nil {
		return 0, err
	}
	t.tx.Queue(sql.Query(query), args...).
		Exec(func(tag pgconn.CommandTag) error { rows = tag.RowsAffected(); return nil })
	err = t.tx.Send(ctx)
	return rows, err
}

// limit has the server end the transaction at its deadline, whatever becomes of this
// process: the session may be idle before the next statement and after it, and the
// statement may take the rest. It is sent together with the statement.
func (t *swapTx) limit() error {
	idle := t.work.idle()
	rest := time.Until(t.deadline) - 2*idle
	if rest < time.Millisecond {
		return context.DeadlineExceeded
	}
	t.tx.Queue(sql.Query("swap_limits"), milliseconds(rest), milliseconds(idle))
	return nil
}

// limited is limit for a statement that is not sent together with it.
func (t *swapTx) limited(ctx context.Context) error {
	if err := t.limit(); err != nil {
		return err
	}
	return t.tx.Send(ctx)
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
