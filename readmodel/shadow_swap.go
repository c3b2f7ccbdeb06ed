package readmodel

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"projector/internal/pace"
	"projector/projection"
	"projector/projection/file"
	"projector/sql"
)

const (
	// swapRounds is how often a swap is repeated for accounts that were written meanwhile.
	swapRounds = 10
	// swapRest is how long consumers are left alone between two of them, at least.
	swapRest = 500 * time.Millisecond
)

// SwapOptions say how the rebuilt accounts are put in the place of the live ones.
type SwapOptions struct {
	Topic     string
	ParkLimit int64
	ParkBytes int64 // 0: any
	Actor     string
	Reason    string        // empty: none was given
	Remove    bool          // also take out the accounts the topic has no event of
	Partial   bool          // the balances may come from other topics as well
	Within    time.Duration // for how long one transaction may hold its locks; 0: 30 s
	Rest      time.Duration // for consumers, between two of them; 0: half a second
	// File is a text of the projection's file that takes the place of the one that the live rows
	// came from; nil: there is none, or it is the same.
	File *file.Projection
}

// Swapped is how many accounts, or rows, have been changed, and how many were to be and are
// not, because others have written them since they were compared.
type Swapped struct {
	Replaced, Removed, Left int64
	Markers                 int64 // put into the inbox
}

// CatchUp brings the shadow to positions of the live tables: exactly or, when ahead, on to
// the end of the topic.
type CatchUp func(ctx context.Context, positions []TopicPosition, ahead bool) error

// Swap replaces the accounts that Compare has noted. It does what can be done in one
// transaction, which holds the positions and accounts for no longer than it may: nothing
// is read from Kafka in it, and the server itself ends it when this process does not go on.
//
// A rebuilt row is right whenever it is put in, if the live tables have seen no event of
// the account that the shadow lacks: consumers then find what the shadow has beyond their
// position to be duplicates. So the shadow is first brought exactly to the positions, and
// an account that has moved on until the positions are locked waits for the next round,
// for which the shadow is brought to the end of the topic. Those that have moved in every
// round, or have been repaired since they were compared, are left alone. After an error
// all rounds but the last one stand.
func (s *Shadow) Swap(ctx context.Context, opts SwapOptions, catchUp CatchUp) (Swapped, error) {
	opts.Within = cmp.Or(opts.Within, swapWithin)
	for round := 1; ; round++ {
		began := time.Now()
		again, err := s.swapRound(ctx, opts, round > 1, catchUp)
		if err != nil {
			return s.swapped, fmt.Errorf("swap: %w", err)
		}
		if !again || round == swapRounds {
			return s.swapped, nil
		}
		if err := pace.Sleep(ctx, max(cmp.Or(opts.Rest, swapRest), time.Since(began))); err != nil {
			return s.swapped, err
		}
	}
}

// swapRound changes what can be changed, and returns whether another round may do more.
func (s *Shadow) swapRound(ctx context.Context, opts SwapOptions, ahead bool, catchUp CatchUp) (again bool, err error) {
	if _, err := s.live.Exec(ctx, sql.Query("swap_look")); err != nil {
		return false, err
	}
	positions, err := LoadTopicPositions(ctx, s.live, BalanceName, opts.Topic)
	if err != nil {
		return false, err
	}
	if err := catchUp(ctx, positions, ahead); err != nil {
		return false, err
	}
	s.swaps++
	w := &swapWork{shadow: s, opts: opts, number: s.swaps, ahead: ahead, reached: positions}
	if err := boundedSwap(ctx, s.live, opts.Within, nil, w.run); err != nil {
		return false, err
	}
	s.swapped.Replaced += w.done.Replaced
	s.swapped.Removed += w.done.Removed
	s.swapped.Left = w.done.Left
	// What is left although nobody has moved is left for another reason.
	return w.done.Left > 0 && w.moved, nil
}

// swapWork is one round, of which each try is one transaction.
type swapWork struct {
	shadow  *Shadow
	opts    SwapOptions
	number  int
	ahead   bool            // the shadow may be beyond the live positions
	reached []TopicPosition // where the shadow is at least
	// Of the last try:
	done  Swapped
	moved bool // the live positions, since the shadow was brought to them
}

// run does all but committing.
func (w *swapWork) run(ctx context.Context, t *swapTx) error {
	positions, err := t.fence(ctx, w.shadow.beside, BalanceName, w.opts.Topic, w.reached)
	if err != nil {
		return err
	}
	w.moved = !slices.Equal(positions, w.reached)
	if _, err := t.exec(ctx, "swap_lock_accounts", w.opts.Remove); err != nil {
		return err
	}
	partitions, offsets := make([]int32, len(positions)), make([]int64, len(positions))
	for i, p := range positions {
		partitions[i], offsets[i] = p.Partition, p.Next
	}
	if err := w.choose(ctx, t, partitions, offsets); err != nil {
		return err
	}
	if w.done.Replaced+w.done.Removed == 0 {
		return errNothingFits
	}
	limit, bytes, number := w.opts.ParkLimit, w.opts.ParkBytes, w.number
	for _, step := range []struct {
		query string
		args  []any
	}{
		{"swap_remove", []any{number}},
		{"swap_insert", []any{number}},
		{"swap_parked_remove", []any{number, limit, partitions, offsets, bytes}},
		{"swap_parked_insert", []any{number, limit, partitions, offsets, w.ahead, bytes}},
		{"swap_overflow_remove", []any{number}},
		{"swap_overflow_insert", []any{number, limit, partitions, offsets, bytes}},
	} {
		if _, err := t.exec(ctx, step.query, step.args...); err != nil {
			return err
		}
	}
	return w.audit(ctx, t)
}

// choose finds out which accounts can be changed now.
func (w *swapWork) choose(ctx context.Context, t *swapTx, partitions []int32, offsets []int64) error {
	args := []any{w.opts.Topic, w.number, w.opts.Remove, w.opts.Partial, partitions, offsets}
	return t.row(ctx, sql.Query("swap_choose"), args, &w.done.Replaced, &w.done.Removed, &w.done.Left)
}

// audit records what was changed. projection.ErrStale means that somebody has written one
// of the accounts in spite of the locks.
func (w *swapWork) audit(ctx context.Context, t *swapTx) error {
	recorded, err := t.exec(ctx, "swap_audit", w.number, w.opts.Actor, w.opts.Reason)
	if err != nil {
		return err
	}
	if recorded != w.done.Replaced+w.done.Removed {
		return projection.ErrStale
	}
	return t.limited(ctx) // COMMIT
}
