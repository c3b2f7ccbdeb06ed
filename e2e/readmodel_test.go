package e2e_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"projector/e2e/oracle"
)

// positions are the group's rows in projector_position.
func (w *world) positions() map[int32]int64 {
	w.t.Helper()
	rows, err := w.db.Query(w.t.Context(),
		"SELECT partition, next_offset FROM projector_position WHERE consumer_group = $1 AND topic = $2", w.group, w.topic)
	if err != nil {
		w.t.Fatalf("positions: %v", err)
	}
	positions := map[int32]int64{}
	var (
		p    int32
		next int64
	)
	if _, err := pgx.ForEachRow(rows, []any{&p, &next}, func() error { positions[p] = next; return nil }); err != nil {
		w.t.Fatalf("positions: %v", err)
	}
	return positions
}

func sum(offsets map[int32]int64) (total int64) {
	for _, o := range offsets {
		total += o
	}
	return total
}

// arrived is a check for await: every partition is consumed to its end.
func (w *world) arrived() string {
	positions, ends := w.positions(), w.ends(w.topic)
	if len(ends) > 0 && maps.Equal(positions, ends) {
		return ""
	}
	return fmt.Sprintf("positions %v, ends %v", positions, ends)
}

// rows is the read model as people see it.
func (w *world) rows() map[string]oracle.Row {
	w.t.Helper()
	rows, err := w.db.Query(w.t.Context(), `
		SELECT account_id, balance IS NOT NULL, coalesce(currency, ''), coalesce(balance::text, ''), coalesce(version, 0),
		       coalesce(status, ''), coalesce(last_event_id, ''), last_event_at, stale, coalesce(waiting_for_version, 0)
		FROM account_balance_current`)
	if err != nil {
		w.t.Fatalf("read model: %v", err)
	}
	found := map[string]oracle.Row{}
	var (
		id string
		r  oracle.Row
		at *time.Time
	)
	into := []any{&id, &r.Exists, &r.Currency, &r.Balance, &r.Version, &r.Status, &r.LastEventID, &at, &r.Stale, &r.WaitingFor}
	_, err = pgx.ForEachRow(rows, into, func() error {
		row := r
		if at != nil {
			row.LastEventAt = at.UTC()
		}
		found[id] = row
		return nil
	})
	if err != nil {
		w.t.Fatalf("read model: %v", err)
	}
	return found
}

// differences is a check for await: the read model is the oracle's.
func (w *world) differences(o *oracle.Oracle) string {
	got, want := w.rows(), o.Rows()
	var lines []string
	for _, id := range slices.Sorted(maps.Keys(want)) {
		if row, exists := got[id]; !exists || row != want[id] {
			lines = append(lines, fmt.Sprintf("%s:\n   got %+v\n  want %+v", id, row, want[id]))
		}
		delete(got, id)
	}
	for id, row := range got {
		lines = append(lines, fmt.Sprintf("%s: must not exist: %+v", id, row))
	}
	if len(lines) == 0 {
		return ""
	}
	return fmt.Sprintf("%d accounts differ, the first of them:\n%s", len(lines), strings.Join(lines[:min(5, len(lines))], "\n"))
}

// physical is where and by whom each row of account_balance was written.
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

// audit records every write that does not raise a version.
func (w *world) audit() {
	w.t.Helper()
	w.exec(`CREATE TABLE audit (account_id text, old bigint, new bigint);
		CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN INSERT INTO audit VALUES (NEW.account_id, OLD.version, NEW.version); RETURN NEW; END $$;
		CREATE TRIGGER audit BEFORE UPDATE ON account_balance
		FOR EACH ROW WHEN (NEW.version <= OLD.version) EXECUTE FUNCTION audit();`)
}

// audited is what audit has found.
func (w *world) audited() (n int) {
	w.t.Helper()
	if err := w.db.QueryRow(w.t.Context(), "SELECT count(*) FROM audit").Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// slowWrites makes each transaction of the projector take some time, so that a
// stream lasts long enough for something to happen in its middle.
func (w *world) slowWrites(d time.Duration) {
	w.t.Helper()
	w.exec(fmt.Sprintf(`CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN PERFORM pg_sleep(%f); RETURN NEW; END $$;
		CREATE TRIGGER slow BEFORE UPDATE ON projector_position FOR EACH ROW EXECUTE FUNCTION slow();`, d.Seconds()))
}
