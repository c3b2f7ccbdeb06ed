package readmodel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"projector/errclass"
	"projector/projection"
	"projector/sql"
)

const (
	// swapWithin is how long a swap holds its locks at most, whatever becomes of this process.
	swapWithin = 30 * time.Second
	// swapRounds is how often a swap is repeated for accounts that were written meanwhile.
	swapRounds = 10
	// swapRest is how long consumers are left alone between two of them, at least.
	swapRest = 500 * time.Millisecond
)

// SwapOptions say how the rebuilt accounts are put in the place of the live ones.
type SwapOptions struct {
	Topic     string
	ParkLimit int64
	Actor     string
	Remove    bool          // also take out the accounts the topic has no event of
	Partial   bool          // the balances may come from other topics as well
	Within    time.Duration // for how long one transaction may hold its locks; 0: 30 s
	Rest      time.Duration // for consumers, between two of them; 0: half a second
}

// Swapped is how many accounts have been changed since the shadow was opened, and how
// many were to be and are not, because others have written them since they were compared.
type Swapped struct{ Replaced, Removed, Left int64 }

// CatchUp brings the shadow to positions of the live tables: exactly or, when ahead, on to
// the end of the topic.
type CatchUp func(ctx context.Context, positions []TopicPosition, ahead bool) error

// SwapGivenUpError says that a swap has not ended within its time. Nothing of it is done.
type SwapGivenUpError struct {
	After  time.Duration
	Within time.Duration
	Cause  string
}

// Error implements error and names the remedy.
func (e *SwapGivenUpError) Error() string {
	return fmt.Sprintf("the swap was given up after %s, for it keeps others from writing and may do so for %s (%s). Of it nothing was changed. "+
		"Was this process stopped, or does somebody hold a lock? Then run it again; if the accounts are too many, stop the "+
		"consumers and build the projection again (runbook)", e.After.Round(time.Second), e.Within, e.Cause)
}

// SafeText vouches for the text: it holds no data.
func (e *SwapGivenUpError) SafeText() string { return e.Error() }

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
		if err := wait(ctx, max(cmp.Or(opts.Rest, swapRest), time.Since(began))); err != nil {
			return s.swapped, err
		}
	}
}

// swapRound changes what can be changed, and returns whether another round may do more.
func (s *Shadow) swapRound(ctx context.Context, opts SwapOptions, ahead bool, catchUp CatchUp) (again bool, err error) {
	if _, err := s.live.Exec(ctx, sql.Query("swap_look")); err != nil {
		return false, err
	}
	positions, err := LoadTopicPositions(ctx, s.live, opts.Topic)
	if err != nil {
		return false, err
	}
	if err := catchUp(ctx, positions, ahead); err != nil {
		return false, err
	}
	s.swaps++
	w := &swapWork{shadow: s, opts: opts, number: s.swaps, ahead: ahead, reached: positions}
	if err := persistently(ctx, w.try); err != nil {
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

// idle is how long the session may do nothing between two statements: this process is
// stopped then, or cut off.
func (w *swapWork) idle() time.Duration { return w.opts.Within / 10 }

// errNothingFits ends a transaction that would change nothing: consumers must not forget
// what they remember because of it.
var errNothingFits = errors.New("no account can be changed now")

// try is one transaction. A failure that came at once may be tried again; one that came
// late has kept others waiting, and that is enough.
func (w *swapWork) try(ctx context.Context) error {
	began := time.Now()
	unanswered, err := w.transact(ctx, began.Add(w.opts.Within))
	if errors.Is(err, errNothingFits) {
		return nil
	}
	if unanswered != "" {
		committed, unknown := w.wasCommitted(ctx, unanswered)
		if unknown != nil {
			return &CommitUnknownError{Transaction: unanswered, Cause: unknown}
		}
		if committed {
			return nil
		}
	}
	if after := time.Since(began); err != nil && ctx.Err() == nil && after >= w.idle() {
		return &SwapGivenUpError{After: after, Within: w.opts.Within, Cause: errclass.Safe(err)}
	}
	return err
}

// transact is one try until a deadline. It returns the transaction's id, too, when its
// COMMIT may have been sent and was not answered.
func (w *swapWork) transact(ctx context.Context, deadline time.Time) (unanswered string, err error) {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	err = transact(ctx, w.shadow.live, func(tx *Tx) error {
		t := &swapTx{work: w, tx: tx, deadline: deadline}
		if err := t.run(ctx); err != nil {
			return err
		}
		return tx.QueryRow(ctx, sql.Query("transaction_id")).Scan(&unanswered)
	})
	if err == nil || answered(err) {
		unanswered = ""
	}
	return unanswered, err
}

// wasCommitted asks what became of a transaction until there is an answer, for a while.
func (w *swapWork) wasCommitted(ctx context.Context, transaction string) (committed bool, err error) {
	err = persistently(ctx, func(ctx context.Context) error {
		committed, err = wasCommitted(ctx, w.shadow.live, transaction)
		return err
	})
	return committed, err
}

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

// positions returns where the live tables are, which they cannot leave any more.
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
