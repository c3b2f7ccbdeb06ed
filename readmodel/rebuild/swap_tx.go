package rebuild

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/errclass"
	"projector/internal/failpoint"
	"projector/readmodel"
	"projector/sql"
)

// swapWithin limits the time of the locks, even if this process is frozen or killed.
const swapWithin = 30 * time.Second

// errNothingFits rolls back a transaction that would change nothing, so that consumers are not
// fenced and keep their cached accounts.
var errNothingFits = errors.New("nothing can be changed now")

// swapTx is the part of a swap's transaction that holds locks.
type swapTx struct {
	tx       *readmodel.Tx
	within   time.Duration
	locks    bool // the transaction holds locks and has to end at the deadline
	deadline time.Time
	stage    string // the current step
}

// boundedSwap runs the function locks in a transaction with a time limit. The server ends the
// transaction even if this process is frozen. The function before may be nil. It runs first,
// without this limit, so it must not lock rows that consumers usually need. After an early failure,
// boundedSwap tries again. After a late failure, it gives up, because consumers have waited long
// enough.
func boundedSwap(ctx context.Context, live *pgxpool.Pool, within time.Duration,
	before func(context.Context, *readmodel.Tx) error, locks func(context.Context, *swapTx) error,
) error {
	return readmodel.Persistently(ctx, func(ctx context.Context) error {
		t := &swapTx{within: within}
		unanswered, err := t.transact(ctx, live, before, locks)
		if errors.Is(err, errNothingFits) {
			return nil
		}
		if unanswered.ID != "" {
			committed, unknown := waitCommitted(ctx, live, unanswered)
			if unknown != nil {
				return readmodel.CommitUnknown(unanswered, unknown)
			}
			if committed {
				return nil
			}
		}
		var refused errclass.Describer // the error has its own explanation
		if after := within - time.Until(t.deadline); err != nil && !errors.As(err, &refused) && t.locks && ctx.Err() == nil && after >= t.idle() {
			return errclass.Text(fmt.Sprintf("the swap was given up after %s while %s, for consumers wait for it and may do so for %s (%s): nothing was changed. "+
				"Pause the consumers first (`projector pause --all%s --reason=rebuild --yes`), run it again, and resume",
				after.Round(time.Second), t.stage, within, errclass.Safe(err), readmodel.ReaderFlags(ctx)))
		}
		return err
	})
}

// transact makes one attempt. It returns the transaction if COMMIT may have been sent and was not
// answered.
func (t *swapTx) transact(ctx context.Context, live *pgxpool.Pool,
	before func(context.Context, *readmodel.Tx) error, locks func(context.Context, *swapTx) error,
) (unanswered readmodel.Unanswered, err error) {
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	var late *time.Timer
	err = readmodel.Transact(bounded, live, func(tx *readmodel.Tx) error {
		t.tx = tx
		if before != nil {
			tx.Queue(sql.Query("swap_limits"), "0", milliseconds(t.idle()))
			if err := before(ctx, tx); err != nil {
				return err
			}
		}
		t.locks, t.deadline = true, time.Now().Add(t.within)
		late = time.AfterFunc(t.within, cancel)
		err := locks(bounded, t)
		if err == nil {
			unanswered, err = tx.Identify(bounded)
		}
		return err
	})
	if late != nil && !late.Stop() && err != nil && ctx.Err() == nil {
		return unanswered, context.DeadlineExceeded
	}
	if err == nil || readmodel.Answered(err) {
		unanswered = readmodel.Unanswered{}
	}
	return unanswered, err
}

// waitCommitted queries, for a limited time, whether a transaction was committed.
func waitCommitted(ctx context.Context, live *pgxpool.Pool, transaction readmodel.Unanswered) (committed bool, err error) {
	err = readmodel.Persistently(ctx, func(ctx context.Context) error {
		committed, err = readmodel.WasCommitted(ctx, live, transaction)
		return err
	})
	return committed, err
}

// idle is the time limit between two statements. A process that exceeds this limit is frozen or has
// lost its connection.
func (t *swapTx) idle() time.Duration { return t.within / 10 }

// next is called at the end of a step. The parameter stage is the next step.
func (t *swapTx) next(done, stage string) {
	failpoint.Here(done)
	t.stage = stage
}

// exec runs a statement within the time limit and returns the number of rows.
func (t *swapTx) exec(ctx context.Context, statement string, args ...any) (rows int64, err error) {
	if err := t.limit(); err != nil {
		return 0, err
	}
	t.tx.Queue(statement, args...).
		Exec(func(tag pgconn.CommandTag) error { rows = tag.RowsAffected(); return nil })
	err = t.tx.Send(ctx)
	return rows, err
}

// record adds actions to the audit trail within the time limit.
func (t *swapTx) record(ctx context.Context, actions []readmodel.Action) error {
	if err := t.limit(); err != nil {
		return err
	}
	readmodel.QueueActions(t.tx, actions)
	return t.tx.Send(ctx)
}

// limit makes the server end the transaction at its deadline, even if this process is frozen. The
// limits leave time for the session to be idle before and after the next statement. They are sent
// together with that statement.
func (t *swapTx) limit() error {
	idle := t.idle()
	rest := time.Until(t.deadline) - 2*idle
	if rest < time.Millisecond {
		return context.DeadlineExceeded
	}
	t.tx.Queue(sql.Query("swap_limits"), milliseconds(rest), milliseconds(idle))
	return nil
}

// limited sets the same limits as limit, and sends them at once.
func (t *swapTx) limited(ctx context.Context) error {
	if err := t.limit(); err != nil {
		return err
	}
	return t.tx.Send(ctx)
}

// fence increases the fences of a projection's consumers. It returns the positions of the live
// tables, which the consumers can no longer move.
func (t *swapTx) fence(ctx context.Context, projection, topic string) ([]TopicPosition, error) {
	if err := t.limit(); err != nil {
		return nil, err
	}
	readmodel.QueueFence(t.tx, projection, nil, nil)
	if err := t.tx.Send(ctx); err != nil {
		return nil, err
	}
	if err := t.limited(ctx); err != nil {
		return nil, err
	}
	return LoadTopicPositions(ctx, t.tx, projection, topic)
}

// wait allows the session to be idle until the deadline, while other sessions write the shadow
// tables.
func (t *swapTx) wait(ctx context.Context) error {
	rest := time.Until(t.deadline)
	if rest < time.Millisecond {
		return context.DeadlineExceeded
	}
	t.tx.Queue(sql.Query("swap_limits"), milliseconds(rest), milliseconds(rest))
	return t.tx.Send(ctx)
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
