package readmodel

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"projector/internal/devstack/devtest"
)

// TestACommitThatRollsBackIsNone commits a failed transaction. PostgreSQL answers ROLLBACK without
// an error, but Transact must return an error.
func TestACommitThatRollsBackIsNone(t *testing.T) {
	pool, err := OpenPool(t.Context(), devtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	err = Transact(t.Context(), pool, func(tx *Tx) error {
		if _, err := tx.Exec(t.Context(), "SELECT 1/0"); err == nil {
			t.Fatal("the transaction has not failed")
		}
		return nil
	})
	if !errors.Is(err, pgx.ErrTxCommitRollback) {
		t.Errorf("error %v, want that it was rolled back", err)
	}
}
