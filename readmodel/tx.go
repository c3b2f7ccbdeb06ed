package readmodel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/errclass"
	"projector/internal/failpoint"
	"projector/internal/pace"
	"projector/internal/retry"
	"projector/projection"
	"projector/sql"
)

// Tx is a transaction that queues its statements and sends them together, so that a flush needs few
// round trips. It is always READ COMMITTED. If a transaction moves positions, Move is called first.
// Then Send fails unless all positions have moved.
type Tx struct {
	*pgx.Conn // all queued statements must have been sent before it is used
	queued    *pgx.Batch
	moves     int64 // positions to move
	moved     int64 // positions that have moved
}

// Move queues changes of positions. All of them have the same consumer group and topic.
func (tx *Tx) Move(moves ...Move) {
	tx.moves += int64(len(moves))
	tx.Queue(sql.Query("position_move"), moveArgs(moves)...).
		Exec(func(tag pgconn.CommandTag) error { tx.moved += tag.RowsAffected(); return nil })
}

// Queue adds a statement. The next Send sends it.
func (tx *Tx) Queue(statement string, args ...any) *pgx.QueuedQuery {
	return tx.queued.Queue(statement, args...)
}

// Send sends the queued statements in one round trip. It returns projection.ErrFenced if the
// position in the database differs from what its owner knows.
func (tx *Tx) Send(ctx context.Context) error {
	if tx.queued.Len() == 0 {
		return nil
	}
	b := tx.queued
	tx.queued = &pgx.Batch{}
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	pace.Answered(ctx, 0)
	if tx.moved != tx.moves {
		return projection.ErrFenced
	}
	return nil
}

// commit sends COMMIT. If a statement of the transaction has failed, PostgreSQL answers ROLLBACK
// without an error, but commit returns an error. The failpoints are for transactions that move
// positions.
func (tx *Tx) commit(ctx context.Context) error {
	if tx.moves > 0 {
		failpoint.Here(failpoint.BeforeCommit)
	}
	tag, err := tx.Exec(ctx, "COMMIT")
	if err == nil && tag.String() != "COMMIT" {
		err = pgx.ErrTxCommitRollback
	}
	if err == nil && tx.moves > 0 {
		failpoint.Here(failpoint.AfterCommit)
	}
	return err
}

// TransactQueued runs fn in a transaction and commits it. If fn returns an error, it rolls back.
// BEGIN is queued, which saves a round trip. So fn has to call Send before it reads anything.
func TransactQueued(ctx context.Context, pool *pgxpool.Pool, fn func(*Tx) error) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release() // closes a connection that is still in a transaction
	tx := &Tx{Conn: conn.Conn(), queued: &pgx.Batch{}}
	tx.Queue("BEGIN ISOLATION LEVEL READ COMMITTED")
	if err = fn(tx); err == nil {
		err = tx.Send(ctx)
	}
	if err == nil {
		return tx.commit(ctx)
	}
	_, _ = tx.Exec(ctx, "ROLLBACK")
	if errclass.Postgres(err) == errclass.RetryReset {
		_ = conn.Conn().Close(ctx) // the session stays read-only, or has no prepared statements: the next attempt needs another one
	}
	return err
}

// Transact does the same as TransactQueued, for a function that reads first.
func Transact(ctx context.Context, pool *pgxpool.Pool, fn func(*Tx) error) error {
	return TransactQueued(ctx, pool, func(tx *Tx) error {
		nameRequest(ctx, tx)
		if err := tx.Send(ctx); err != nil {
			return err
		}
		return fn(tx)
	})
}

// Unanswered is a transaction without a reply to its COMMIT. The zero value means that there is none.
type Unanswered struct {
	ID     string    // PostgreSQL's transaction id
	Server time.Time // start of the server that has given the id
}

// Identify sends the queued statements and returns what is needed to find out later whether the
// transaction was committed. It must be called last.
func (tx *Tx) Identify(ctx context.Context) (Unanswered, error) {
	var u Unanswered
	tx.Queue(sql.Query("transaction_id")).QueryRow(func(row pgx.Row) error { return row.Scan(&u.ID, &u.Server) })
	if err := tx.Send(ctx); err != nil {
		return Unanswered{}, err
	}
	return u, nil
}

// CommitUnknown returns the error for a transaction if the reply to its COMMIT was lost and PostgreSQL
// could not be queried for the result.
func CommitUnknown(of Unanswered, cause error) error {
	return errclass.WithCause("the reply to COMMIT was lost and PostgreSQL cannot be asked what became of transaction "+of.ID+
		": run the command again when it can be reached. What was committed is then found to be done already", cause)
}

// TransactOnce does the same as Transact, and retries for a limited time after failures that may be
// transient. The transaction is committed at most once. If the reply to COMMIT was lost,
// TransactOnce first queries whether the transaction was committed. The function fn may run several
// times.
func TransactOnce(ctx context.Context, pool *pgxpool.Pool, fn func(context.Context, *Tx) error) error {
	var unanswered Unanswered
	err := Patiently(ctx, func(attempt context.Context) error {
		committed, err := WasCommitted(attempt, pool, unanswered)
		if committed || err != nil {
			return err
		}
		unanswered = Unanswered{}
		err = Transact(attempt, pool, func(tx *Tx) error {
			if err := fn(attempt, tx); err != nil {
				return err
			}
			id, err := tx.Identify(attempt)
			if err == nil {
				unanswered = id
			}
			return err
		})
		if Answered(err) {
			unanswered = Unanswered{}
		}
		return err
	})
	if err != nil && unanswered.ID != "" {
		return CommitUnknown(unanswered, err)
	}
	return err
}

// Answered reports whether an error proves that nothing was committed. An error that ends the
// session is no proof, because the server may send it during the commit.
func Answered(err error) bool {
	var e *pgconn.PgError
	return errors.Is(err, pgx.ErrTxCommitRollback) || errors.As(err, &e) && e.SeverityUnlocalized == "ERROR"
}

// WasCommitted reports whether a transaction without a reply to its COMMIT was committed. It
// returns projection.ErrStale while the commit is still in progress. A standby may lack the
// transaction, so a standby is not asked.
func WasCommitted(ctx context.Context, pool *pgxpool.Pool, u Unanswered) (bool, error) {
	if u.ID == "" {
		return false, nil
	}
	var (
		status     string
		sameServer bool
	)
	err := pool.QueryRow(ctx, sql.Query("transaction_status"), u.ID, u.Server).Scan(&status, &sameServer)
	switch {
	case err == nil && status == "standby":
		pool.Reset() // the next attempt needs a connection to the primary
		return false, &pgconn.PgError{Severity: "ERROR", Code: readOnlyTransaction, Message: "the server is a standby, so it may lack the transaction"}
	case HasCode(err, invalidParameterValue): // the id is in the future, because this server lost the transaction in a failover
		return false, nil
	case err == nil && status == "in progress":
		err = fmt.Errorf("the transaction is still being committed: %w", projection.ErrStale)
	}
	if err != nil || status != "committed" || sameServer {
		return status == "committed", err
	}
	// If a standby has taken over that lacks the transaction, it may have given the id to another one.
	committed, err := One[bool](ctx, pool, "ask what became of the transaction", "transaction_trail", u.ID)
	if HasCode(err, InsufficientPrivilege) {
		// The role of `run` may not read the audit trail. It applies fetched events again, and events
		// that are already applied change nothing.
		return false, nil
	}
	return committed, err
}

const (
	// RepairAttempt is the deadline of one transaction.
	RepairAttempt = 10 * time.Second
	// repairPatience limits the retries of a failing transaction. An operator waits for the
	// command, so a command that cannot succeed must end after some time.
	repairPatience = 12 * time.Second
)

// Patiently does the same as Persistently, with a deadline for each attempt.
func Patiently(ctx context.Context, fn func(context.Context) error) error {
	return Persistently(ctx, func(ctx context.Context) error {
		attempt, cancel := context.WithTimeout(ctx, RepairAttempt)
		defer cancel()
		return fn(attempt)
	})
}

// Persistently repeats fn for a limited time, as long as its failure may be transient.
func Persistently(ctx context.Context, fn func(context.Context) error) error {
	return retry.Bound{
		Within: repairPatience, Pause: 50 * time.Millisecond, Longest: repairPatience,
		Passing: func(err error) bool { return errors.Is(err, projection.ErrStale) || retry.Passing(err) },
	}.Do(ctx, fn)
}
