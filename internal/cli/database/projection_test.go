package database_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

const loyalty = `-- projection: loyalty_points
-- mode: ordered
-- types: PointsSpent, PointsEarned
INSERT INTO loyalty (account_id, points)
SELECT account_id, sum((data->>'points')::bigint) FROM new_events GROUP BY account_id
ON CONFLICT (account_id) DO UPDATE SET points = loyalty.points + EXCLUDED.points;
`

const tables = `CREATE TABLE loyalty (account_id text PRIMARY KEY, points bigint NOT NULL)`

// The function points returns an event of the projection loyalty_points. The text n is the JSON
// value of its points.
func points(account string, version int, n string) string {
	return fmt.Sprintf(`{"eventId":"%s-%d","eventType":"PointsEarned","accountId":%q,"version":%d,"occurredAt":"2026-01-01T00:00:00Z","data":{"points":%s}}`,
		account, version, account, version, n)
}

// The function stage returns a stage with the table of the projection loyalty_points.
func stage(t *testing.T) *clitest.Stage {
	t.Helper()
	s := clitest.NewStage(t)
	s.Exec(tables)
	return s
}

func TestCheck(t *testing.T) {
	s := stage(t)
	folder := t.TempDir()
	file := func(text string) string {
		path := filepath.Join(folder, "p.sql")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	clitest.Equal(t, s.Must("projection", "check", file(loyalty), "--output=json"),
		`{"name":"loyalty_points","mode":"ordered","types":["PointsEarned","PointsSpent"]}`+"\n")
	clitest.Contains(t, s.Must("projection", "check", file(loyalty)), "loyalty_points, mode ordered, uses PointsEarned, PointsSpent", "cannot be rebuilt")
	for text, want := range map[string]string{
		strings.Replace(loyalty, "ordered", "sorted", 1):                                    `p.sql: line 2: mode: "sorted" is unknown`,
		strings.Replace(loyalty, "-- mode: ordered\n", "", 1):                               `p.sql: line 1: the header has no line "-- mode: …"`,
		strings.Replace(loyalty, "loyalty_points", "account_balance", 1):                    "p.sql: line 1: projection: account_balance is built in",
		strings.Replace(loyalty, "\n-- types", "\n-- tables: account_balance\n-- types", 1): "p.sql: line 3: tables: account_balance is the projector's own",
		strings.Replace(loyalty, "\n-- types", "\n-- tables: loyalty, gone\n-- types", 1):   "p.sql: line 3: tables: table gone does not exist",
		loyalty + "COMMIT;": "p.sql: line 7: COMMIT: ",
		strings.Replace(loyalty, "FROM new_events", "FROM new_events e\nJOIN nowhere n", 1):    `p.sql: line 6: `,
		strings.Replace(loyalty, "points)\n", "points)\n\n", 1) + "SELECT dat FROM new_events": `p.sql: line 8: column "dat" does not exist (SQLSTATE 42703)`,
		loyalty + "\nCALL nothing(1);":                                                            `p.sql: line 8: procedure nothing(integer) does not exist`,
		loyalty + "SELECT 1 FROM\n new_events WHER true":                                          `p.sql: line 8: syntax error`,
		loyalty + "UPDATE account_balance SET balance = 0;":                                       "p.sql: line 7: projection loyalty_points may not touch account_balance, which is the projector's own",
		loyalty + "WITH x AS (DELETE FROM inbox RETURNING 1) SELECT 1 FROM x, projector_position": "which is the projector's own",
	} {
		clitest.Contains(t, s.Refused(exit.Usage, "projection", "check", file(text)), want)
	}
	clitest.Contains(t, s.Refused(exit.Usage, "projection", "check", folder+"/none.sql"), "none.sql")
	status, out, notes := s.Command("projection", "check", file(loyalty+"UPDATE loyalty l SET points = 0\nFROM new_events e WHERE e.account_id = l.account_id"), "--output=json")
	if status != 0 || !strings.HasPrefix(out, "{") || !strings.Contains(notes, "p.sql: line 7: UPDATE … FROM new_events changes a row once") {
		t.Errorf("status %d, %q, %q", status, out, notes)
	}
	rebuilt := file(strings.Replace(loyalty, "\n-- types", "\n-- tables: Loyalty\n-- types", 1))
	s.Must("projection", "check", rebuilt)
	s.Exec("ALTER TABLE loyalty DROP CONSTRAINT loyalty_pkey, ADD UNIQUE (account_id)")
	clitest.Contains(t, s.Refused(exit.Failed, "projection", "check", rebuilt),
		"p.sql: line 3: tables: table loyalty has no primary key", "ALTER TABLE loyalty ADD PRIMARY KEY")
	// PostgreSQL finds this table, and a rebuild does not, because it looks in the schema of the read model.
	clitest.Contains(t, s.Refused(exit.Failed, "projection", "check", file(strings.Replace(loyalty, "\n-- types", "\n-- tables: pg_class\n-- types", 1))),
		"p.sql: line 3: tables: table pg_class is in schema pg_catalog, and rebuild replaces tables of schema ")
	var rows int
	if err := s.Pool.QueryRow(t.Context(), "SELECT count(*) FROM projection_file").Scan(&rows); err != nil || rows != 0 {
		t.Errorf("a check has kept %d files, %v", rows, err)
	}
}

// The function sorted sorts the items of a list, because the dead letters of a batch have no fixed
// order.
func sorted(list string) string {
	items := strings.Split(list, ", ")
	slices.Sort(items)
	return strings.Join(items, ", ")
}

// TestAnOrderedCustomProjection runs a custom projection with a gap and with an event that
// PostgreSQL refuses. It checks the output of the commands and then runs the repairs.
func TestAnOrderedCustomProjection(t *testing.T) {
	s := stage(t)
	path := s.UseCustomProjection("loyalty_points", loyalty)
	s.Produce(
		points("a", 1, "5"), points("a", 3, "7"), // a gap
		points("b", 1, "1"), points("b", 2, `"many"`), points("b", 3, "2"), // PostgreSQL refuses the second event
		points("c", 1, "3"), strings.Replace(points("c", 2, "9"), "PointsEarned", "TierChanged", 1), points("c", 3, "4"),
		points("c", 1, "3"), "garbage",
	)
	s.Consuming(func() {
		_, metrics, _ := s.Command("lag", "--output=json")
		clitest.Contains(t, metrics, `"lag_records":0`)
	})
	row := func(want string) {
		t.Helper()
		clitest.Equal(t, s.Text("SELECT string_agg(account_id || ' ' || points, ', ' ORDER BY account_id) FROM loyalty"), want)
	}
	row("a 5, b 1, c 7")
	clitest.Equal(t, clitest.Pick(s.Lines("gaps"), "account_id", "expected_version", "received_version", "class", "waiting_events"),
		"a 2 3 version_gap 1, b 2 2 rejected_by_database 2")
	clitest.Equal(t, sorted(clitest.Pick(s.Lines("dlq", "list"), "account_id", "received_version", "class", "status")),
		"a 3 version_gap waiting, b 2 rejected_by_database open, b 3 version_gap waiting, null null malformed_payload open")
	clitest.Contains(t, s.Must("dlq", "show", "0/0"), "loyalty_points", "waits for version 2")
	shown := s.Lines("account", "show", "a")[0]
	if shown["version"] != 1.0 || shown["balance"] != nil || shown["currency"] != nil || shown["status"] != nil || shown["last_event_id"] != "a-1" ||
		shown["waiting_for_version"] != 2.0 || shown["stale"] != true || len(shown["parked"].([]any)) != 1 {
		t.Errorf("account show: %v", shown)
	}
	clitest.Contains(t, s.Must("account", "show", "a"), "version        1", "waits for version 2")
	clitest.Contains(t, s.Refused(exit.Failed, "account", "show", "nobody"), "unknown")
	clitest.Contains(t, s.Must("inspect", "--limit=1", "--offset=6"), "TierChanged", "its type is ignored by --ignore-event-types, the mapping or the projection file")
	clitest.Equal(t, clitest.Pick(s.Lines("position"), "position", "state"), "10 running")

	clitest.Contains(t, s.Must("account", "skip", "b", "--version=2", "--reason=wrong"), "would skip")
	clitest.Contains(t, s.Must("account", "skip", "b", "--version=2", "--reason=wrong", "--yes"), "waiting events applied: 1\n")
	row("a 5, b 3, c 7")
	s.Produce(points("a", 2, "100"))
	s.Consuming(nil)
	row("a 112, b 3, c 7")
	clitest.Equal(t, s.Must("gaps", "--output=json"), "")
	clitest.Equal(t, sorted(clitest.Statuses(s.Lines("dlq", "list"))), "a 3 resolved, b 2 resolved, b 3 resolved, null null open")

	for _, args := range [][]string{{"gaps"}, {"account", "show", "a"}, {"lag"}, {"dlq", "list"}, {"position"}} {
		clitest.Contains(t, s.Refused(exit.Usage, append(args, "--projection=account_balance")...), "--projection (PROJECTION): is account_balance", "--projection-file")
	}
	s.Must("gaps", "--projection=loyalty_points")
	t.Setenv("PROJECTION_FILE", "")
	clitest.Equal(t, sorted(clitest.Statuses(s.Lines("dlq", "list", "--projection-file="+path))), "a 3 resolved, b 2 resolved, b 3 resolved, null null open")
	clitest.Equal(t, clitest.Statuses(s.Lines("dlq", "list")), "")
	clitest.Contains(t, s.Refused(exit.Usage, "gaps", "--projection=loyalty_points"), `"loyalty_points" is unknown`, "--projection-file")
}

// TestAChangedFileIsRefused shows that the program does not add to the rows of a projection after
// its file has changed, unless the change is accepted.
func TestAChangedFileIsRefused(t *testing.T) {
	s := stage(t)
	path := s.UseCustomProjection("loyalty_points", loyalty)
	s.Produce(points("a", 1, "5"))
	// A stored version of the file does not count if nothing was processed with it.
	s.Exec("INSERT INTO projection_file (projection, sha256, mode, text) VALUES ('loyalty_points', 'x', 'once', 'SELEKT')")
	s.Consuming(nil)
	change := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	changed := strings.Replace(loyalty, "::bigint", "::bigint * 2", 1)
	change(changed)
	s.Produce(points("a", 2, "7"))
	const remedy = "came from another text of its file than this one"
	clitest.Contains(t, s.Refused(exit.Failed, "run", "--listen=127.0.0.1:0"), remedy, "give that text", "projector rebuild", "--accept-changed-file")
	clitest.Contains(t, s.Refused(exit.Failed, "dlq", "replay"), remedy)
	refused := s.Refused(exit.Failed, "account", "skip", "a", "--version=2", "--reason=x")
	clitest.Contains(t, refused, remedy)
	if strings.Contains(refused, "needs a login") {
		t.Errorf("another login would not help: %s", refused)
	}
	_, out, said := s.Command("projection", "check", path)
	clitest.Contains(t, said, remedy)
	clitest.Contains(t, out, "loyalty_points")
	s.Must("gaps") // only reads, and applies nothing

	t.Setenv("PROJECTOR_ACCEPT_CHANGED_FILE", "true")
	s.Consuming(nil)
	t.Setenv("PROJECTOR_ACCEPT_CHANGED_FILE", "")
	s.Produce(points("a", 3, "1"))
	s.Consuming(nil)
	var sum int
	if err := s.Pool.QueryRow(t.Context(), "SELECT points FROM loyalty").Scan(&sum); err != nil || sum != 5+14+2 {
		t.Errorf("%d points, %v", sum, err)
	}

	change(strings.Replace(changed, "ordered", "once", 1))
	clitest.Contains(t, s.Refused(exit.Failed, "run", "--listen=127.0.0.1:0", "--accept-changed-file"), "was begun with mode: ordered", "another name")
	clitest.Contains(t, s.Refused(exit.Usage, "gaps"), "whose mode is ordered")
	change("-- mode: once")
	clitest.Contains(t, s.Refused(exit.Usage, "run"), "--projection-file (PROJECTION_FILE)", "line 1", "2 mistakes")
	t.Setenv("PROJECTION_FILE", "")
	clitest.Contains(t, s.Refused(exit.Usage, "run", "--accept-changed-file"), "--accept-changed-file")
}
