package e2e_test

import (
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

	"projector/internal/testbank"
	"projector/internal/testbank/compare"
)

// positions returns the group's rows of projector_position.
func (w *world) positions() map[int32]int64 {
	w.t.Helper()
	return must(w.reader().Positions(w.t.Context(), w.db))(w.t)
}

func sum(offsets map[int32]int64) (total int64) {
	for _, o := range offsets {
		total += o
	}
	return total
}

// The method arrived is a check for await. It succeeds when every partition is consumed to its end.
func (w *world) arrived() string {
	positions, ends := w.positions(), w.ends(w.topic)
	if len(ends) > 0 && maps.Equal(positions, ends) {
		return ""
	}
	return fmt.Sprintf("positions %v, ends %v", positions, ends)
}

// rows returns the accounts from the view that readers use.
func (w *world) rows() map[string]testbank.Row {
	w.t.Helper()
	return must(compare.Rows(w.t.Context(), w.db, ""))(w.t)
}

// differences is a check for await. It succeeds when the read model equals the rows of the oracle.
func (w *world) differences(o *testbank.Oracle) string { return compare.Differences(w.rows(), o) }

// The method physical returns the row version (location and transaction) of each row of
// account_balance.
func (w *world) physical() map[string]string {
	w.t.Helper()
	rows, err := w.db.Query(w.t.Context(), "SELECT account_id, ctid::text || ' ' || xmin::text FROM account_balance")
	if err != nil {
		w.t.Fatal(err)
	}
	written := map[string]string{}
	var id, by string
	if _, err := pgx.ForEachRow(rows, []any{&id, &by}, func() error { written[id] = by; return nil }); err != nil {
		w.t.Fatal(err)
	}
	return written
}

// audit installs a trigger that records every update that does not raise a version.
func (w *world) audit() {
	w.t.Helper()
	w.exec(`CREATE TABLE audit (account_id text, old bigint, new bigint);
		CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN INSERT INTO audit VALUES (NEW.account_id, OLD.version, NEW.version); RETURN NEW; END $$;
		CREATE TRIGGER audit BEFORE UPDATE ON account_balance
		FOR EACH ROW WHEN (NEW.version <= OLD.version) EXECUTE FUNCTION audit();`)
}

// The method audited returns the number of updates that audit has recorded.
func (w *world) audited() (n int) {
	w.t.Helper()
	if err := w.db.QueryRow(w.t.Context(), "SELECT count(*) FROM audit").Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// slowWrites delays each transaction of the projector, so that a test can act in the middle of a
// stream.
func (w *world) slowWrites(d time.Duration) {
	w.t.Helper()
	w.exec(fmt.Sprintf(`CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN PERFORM pg_sleep(%f); RETURN NEW; END $$;
		CREATE TRIGGER slow BEFORE UPDATE ON projector_position FOR EACH ROW EXECUTE FUNCTION slow();`, d.Seconds()))
}
