package own_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"projector/projection/file"
	"projector/readmodel/rebuild"
)

// TestARebuildPutsOrderedTablesRight shows that one swap corrects the rows of an ordered
// projection, the versions of its accounts and its waiting events. Consumers then continue with the
// corrected tables.
func TestARebuildPutsOrderedTablesRight(t *testing.T) {
	t.Parallel()
	pool := stage(t)
	execute(t, pool, "DROP TABLE seen; CREATE TABLE seen (event_id text PRIMARY KEY, \"offset\" bigint)")
	p := parse(t, strings.Replace(fmt.Sprintf(loyalty, file.Ordered), "-- types", "-- tables: loyalty, seen\n-- types", 1))
	poison := strings.Replace(points("b", 2, 0), `"0"`, `"x"`, 1)
	log := []string{
		points("a", 1, 5), points("a", 3, 7), // the second event is after a gap
		points("b", 1, 1), poison, points("b", 3, 2), // the last event is after a refused event
		points("c", 1, 3), points("c", 2, 4),
	}
	f := feed(t, pool, p)
	f.consume(log)
	execute(t, pool, "INSERT INTO projection_account (projection, account_id, version) VALUES ('another', 'a', 9)")
	const (
		query = "SELECT account_id, points, versions FROM loyalty ORDER BY account_id"
		state = `SELECT a.account_id, a.version, coalesce(string_agg(e.version || ' ' || e.class, ', ' ORDER BY e.version), '') FROM projection_account a
			LEFT JOIN projection_parked_event e USING (projection, account_id) WHERE a.projection <> 'another' GROUP BY 1, 2 ORDER BY 1`
	)
	wantRows, wantState := []string{"a 5 1", "b 1 1", "c 7 1 2"}, []string{"a 1 3 version_gap", "b 1 2 rejected_by_database, 3 version_gap", "c 2 "}
	holds := func(what string) {
		t.Helper()
		same(t, what+": rows", rows(t, pool, query), wantRows)
		same(t, what+": accounts", rows(t, pool, state), wantState)
		same(t, what+": of others", rows(t, pool, "SELECT version FROM projection_account WHERE projection = 'another'"), []string{"9"})
	}
	holds("consumed")
	for what, damage := range map[string]struct {
		statements        string
		replaced, removed int64
	}{
		"nothing": {"", 0, 0},
		"rows":    {"UPDATE loyalty SET points = 100 WHERE account_id = 'a'; DELETE FROM loyalty WHERE account_id = 'b'; INSERT INTO loyalty VALUES ('x', 1, 1, '')", 2, 1},
		"accounts": {`DELETE FROM projection_account WHERE account_id = 'c' AND projection <> 'another'; DELETE FROM projection_parked_event WHERE account_id = 'a';
			INSERT INTO projection_account (projection, account_id, version) VALUES ('loyalty_points', 'x', 4)`, 2, 1},
		"both": {"UPDATE projection_account SET version = 7 WHERE account_id = 'c'; UPDATE loyalty SET points = 100 WHERE account_id IN ('c', 'b')", 2, 0},
	} {
		execute(t, pool, damage.statements)
		if replaced, removed, err := rebuilt(t, pool, p, log); replaced != damage.replaced || removed != damage.removed || err != nil {
			t.Errorf("%s: %d replaced, %d removed, %v", what, replaced, removed, err)
		}
		holds(what)
	}

	// Consumers continue during the rebuild.
	opts := rebuild.SwapOptions{Topic: "events", Actor: "me"}
	goOn := func() { // consumes two events, of which the second closes a gap
		log = append(log, points("c", 3, 1), points("a", 2, 1))
		f.consume(log)
		wantState = []string{"a 3 ", wantState[1], "c 3 "}
	}
	execute(t, pool, "DELETE FROM projection_parked_event WHERE account_id = 'b'")
	wantRows, wantState[1] = []string{"a 13 1 2 3", "b 1 1", "c 8 1 2 3"}, "b 1 "
	if _, _, err := rebuiltAs(t, pool, p, &log, opts, goOn); err != nil {
		t.Errorf("consumers have gone on: %v", err)
	}
	wantState[1] = "b 1 2 rejected_by_database, 3 version_gap"
	holds("put right")

	execute(t, pool, "UPDATE loyalty SET points = 100 WHERE account_id IN ('a', 'b')")
	if replaced, _, err := rebuiltAs(t, pool, p, &log, opts, func() {
		f.claim()
		log = append(log, points("c", 4, 1), points("a", 4, 1))
		f.consume(log)
	}); replaced != 2 || err != nil {
		t.Errorf("%d replaced, %v", replaced, err)
	}
	wantRows, wantState = []string{"a 14 1 2 3 4", "b 1 1", "c 9 1 2 3 4"}, []string{"a 4 ", wantState[1], "c 4 "}
	holds("rows")

	// An account that gets a lower version must not keep rows from its later events.
	execute(t, pool, "DELETE FROM projection_account WHERE account_id = 'b'; INSERT INTO loyalty VALUES ('b2', 1, 1, ''); UPDATE loyalty SET account_id = 'd' WHERE account_id = 'b2'")
	if _, _, err := rebuiltAs(t, pool, p, &log, opts, func() {}); err != nil {
		t.Error(err)
	}
	wantRows = []string{"a 14 1 2 3 4", "b 1 1", "c 9 1 2 3 4", "d 1 "}
	holds("a stranger stays")

	log = append(log, strings.Replace(points("e", 1, 1), "PointsEarned", "Other", 1))
	f.claim()
	f.consume(log)
	execute(t, pool, "UPDATE projection_account SET version = 5 WHERE account_id = 'e'; INSERT INTO loyalty VALUES ('e', 1, 1, '')")
	if _, _, err := rebuiltAs(t, pool, p, &log, opts, func() {}); !errors.Is(err, rebuild.ErrRowsStay) {
		t.Errorf("rows that stay: %v", err)
	}
	if _, removed, err := rebuilt(t, pool, p, log); removed != 2 || err != nil {
		t.Errorf("%d removed, %v", removed, err)
	}
	wantRows, wantState = wantRows[:3], append(wantState, "e 1 ")
	holds("removed")
}
