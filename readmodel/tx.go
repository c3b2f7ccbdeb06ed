package readmodel

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"projector/projection"
	"projector/sql"
)

// Tx is a transaction whose statements are queued and sent together, so that a
// flush costs few round trips. Its first statement may move a partition's position:
// then nothing counts unless that row moved.
type Tx struct {
	conn   *pgx.Conn
	queued *pgx.Batch
	moves  bool
	moved  int64 // position rows
}

// begin queues the begin of a transaction.
func begin(conn *pgx.Conn) *Tx {
	tx := &Tx{conn: conn, queued: &pgx.Batch{}}
	tx.Queue("BEGIN")
	return tx
}

// move queues the move of a position, from what its owner knows to next.
func (tx *Tx) move(p Partition, pos projection.Position, next projection.NextOffset) {
	tx.moves = true
	tx.Queue(sql.Query("position_move"), moveArgs(p, pos, next)...).
		Exec(func(tag pgconn.CommandTag) error { tx.moved = tag.RowsAffected(); return nil })
}

// Queue adds a statement to what the next Send sends.
func (tx *Tx) Queue(statement string, args ...any) *pgx.QueuedQuery {
	return tx.queued.Queue(statement, args...)
}

// Send sends what is queued, in one round trip. projection.ErrFenced means that the
// position was not where its owner knew it to be.
func (tx *Tx) Send(ctx context.Context) error {
	if tx.queued.Len() == 0 {
		return nil
	}
	b := tx.queued
	tx.queued = &pgx.Batch{}
	if err := tx.conn.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	if tx.moves && tx.moved != 1 {
		return projection.ErrFenced
	}
	return nil
}

// end commits when err is nil, else rolls back, as well as that can be done: a
// connection that cannot roll back is closed when it is released.
func (tx *Tx) end(ctx context.Context, err error) error {
	if err == nil {
		return commit(ctx, tx.conn)
	}
	_, _ = tx.conn.Exec(ctx, "ROLLBACK")
	return err
}
