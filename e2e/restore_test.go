package e2e_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"projector/internal/testbank"
)

var tables = []string{"account_balance", "projector_position", "parked_event", "park_overflow"}

// backup copies the tables of account_balance at one point in time.
func (w *world) backup() {
	w.t.Helper()
	err := pgx.BeginTxFunc(w.t.Context(), w.db, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		for _, table := range tables {
			if _, err := tx.Exec(w.t.Context(), "CREATE TABLE backup_"+table+" AS SELECT * FROM "+table); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		w.t.Fatalf("back up: %v", err)
	}
}

// restore restores these tables from the backup in one transaction. A query of the program that reads
// several of the tables may deadlock with it. Then the restore is tried again, as a person would do.
func (w *world) restore() {
	w.t.Helper()
	await(w.t, "the restore", func() string {
		err := pgx.BeginFunc(w.t.Context(), w.db, w.restoreTables)
		var refused *pgconn.PgError
		switch {
		case errors.As(err, &refused) && refused.Code == "40P01":
			return err.Error()
		case err != nil:
			w.t.Fatalf("restore: %v", err)
		}
		return ""
	})
}

func (w *world) restoreTables(tx pgx.Tx) error {
	// The lock order is that of the projector's transactions: the position is locked first.
	for _, sql := range []string{
		"LOCK TABLE projector_position IN ACCESS EXCLUSIVE MODE",
		"LOCK TABLE account_balance, parked_event, park_overflow IN ACCESS EXCLUSIVE MODE",
	} {
		if _, err := tx.Exec(w.t.Context(), sql); err != nil {
			return err
		}
	}
	for _, table := range tables {
		if _, err := tx.Exec(w.t.Context(), "DELETE FROM "+table); err != nil {
			return err
		}
		if _, err := tx.Exec(w.t.Context(), "INSERT INTO "+table+" SELECT * FROM backup_"+table); err != nil {
			return err
		}
	}
	return nil
}

// TestOlderBackupRestored restores an older backup in two cases: while a projector consumes, and
// while a projector is idle.
func TestOlderBackupRestored(t *testing.T) {
	t.Parallel()
	for name, busy := range map[string]bool{"busy": true, "idle": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 4)
			w.slowWrites(5 * time.Millisecond)
			total := scaled(12_000)
			finish := w.feed(testbank.Generate(testbank.Options{Seed: seed(t), Records: total, Partitions: w.partitions, Accounts: 300}), total/150, 25*time.Millisecond)
			p := w.start()
			await(t, "the time of the backup", w.passed(int64(total/4)))
			w.backup()
			await(t, "more", w.passed(int64(total/2)))
			if !busy {
				finish()
				await(t, "every record consumed", w.arrived)
			}
			before := sum(w.positions())
			w.restore()
			if after := sum(w.positions()); after >= before && !busy {
				t.Fatalf("restored at %d, was at %d", after, before)
			}
			if busy {
				finish()
			}
			w.exact(w.oracle(), repeated)
			await(t, "ready", p.answers("/readyz", 200, ""))
			p.terminate()
			w.atRest()
		})
	}
}
