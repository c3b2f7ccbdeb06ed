package readmodel

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"projector/internal/devstack/devtest"
)

// TestACommitThatRollsBackIsNone: PostgreSQL answers the COMMIT of a failed transaction with
// ROLLBACK and without an error.
func TestACommitThatRollsBackIsNone(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), devtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	tx := Begin(conn)
	if err := tx.Send(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "SELECT 1/0"); err == nil {
		t.Fatal("the transaction has not failed")
	}
	if err := tx.commit(t.Context()); !errors.Is(err, pgx.ErrTxCommitRollback) {
		t.Errorf("error %v, want that it was rolled back", err)
	}
}
