package own_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/errclass"
	"projector/projection/file"
	"projector/readmodel/rebuild"
)

// unusual is the beginning of a projection file for one of the tables below.
const unusual = "-- projection: unusual\n-- mode: once\n-- types: PointsEarned\n-- tables: "

// TestARebuildReplacesRowsOfUnusualTables damages rows of tables with unusual keys and constraints.
func TestARebuildReplacesRowsOfUnusualTables(t *testing.T) {
	t.Parallel()
	log := []string{points("a", 1, "1.0"), points("b", 1, "2.5"), points("c", 1, "7")}
	for name, c := range map[string]struct{ tables, text, damage string }{
		"a key that is equal and has another text": {
			"CREATE TABLE n (k numeric PRIMARY KEY, v text)", "n\nINSERT INTO n SELECT (data->>'points')::numeric, account_id FROM new_events;\n",
			"UPDATE n SET k = 1.00, v = 'x' WHERE k = 1",
		},
		"a key that is equal and has another text, and nothing else": {
			"CREATE TABLE n (k interval PRIMARY KEY)", "n\nINSERT INTO n SELECT '1 mon' FROM new_events ON CONFLICT DO NOTHING;\n",
			"UPDATE n SET k = '30 days'",
		},
		"a key with a generated column": {
			"CREATE TABLE n (k text, v numeric, half numeric GENERATED ALWAYS AS (v / 2) STORED, w text, PRIMARY KEY (k, half))",
			"n\nINSERT INTO n (k, v, w) SELECT 'k', (data->>'points')::numeric, account_id FROM new_events;\n",
			"UPDATE n SET w = 'x' WHERE v = 1; DELETE FROM n WHERE v = 7; INSERT INTO n VALUES ('k', 8)",
		},
		"a foreign key": {
			"CREATE TABLE n (k text PRIMARY KEY, v numeric); CREATE TABLE m (k text PRIMARY KEY REFERENCES n)",
			"n, m\nINSERT INTO n SELECT account_id, (data->>'points')::numeric FROM new_events; INSERT INTO m SELECT account_id FROM new_events;\n",
			"DELETE FROM m; DELETE FROM n WHERE k = 'a'; INSERT INTO n VALUES ('x', 1); INSERT INTO m VALUES ('x')",
		},
		"a deferrable constraint": {
			"CREATE TABLE n (k text PRIMARY KEY, v numeric UNIQUE DEFERRABLE)",
			"n\nINSERT INTO n SELECT account_id, (data->>'points')::numeric FROM new_events;\n",
			"UPDATE n SET v = 3.5 - v WHERE k <> 'c'; DELETE FROM n WHERE k = 'c'",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := stage(t)
			execute(t, pool, c.tables)
			p := parse(t, unusual+c.text)
			feed(t, pool, p).consume(log)
			tables := []string{"n", "m"}
			if !strings.Contains(c.tables, "TABLE m") {
				tables = tables[:1]
			}
			state := func() (all []string) {
				for _, table := range tables {
					found := rows(t, pool, "SELECT * FROM "+table)
					slices.Sort(found)
					all = append(all, found...)
				}
				return all
			}
			want := state()
			execute(t, pool, c.damage)
			if _, _, err := rebuilt(t, pool, p, log); err != nil {
				t.Fatal(err)
			}
			same(t, "rows", state(), want)
			if replaced, removed, err := rebuilt(t, pool, p, log); replaced+removed != 0 || err != nil {
				t.Errorf("what is right: %d replaced, %d removed, %v", replaced, removed, err)
			}
		})
	}
}

// valued makes a table of accounts with values, and a projection that fills it. It consumes the log.
func valued(t *testing.T, log []string) (*pgxpool.Pool, file.Projection) {
	t.Helper()
	pool := stage(t)
	execute(t, pool, "CREATE TABLE n (k text PRIMARY KEY, v numeric)")
	p := parse(t, unusual+"n\nINSERT INTO n SELECT account_id, (data->>'points')::numeric FROM new_events;\n")
	feed(t, pool, p).consume(log)
	return pool, p
}

// A trigger may keep a row from being changed. The error says so.
func TestARebuildReportsATriggerThatPreventsChanges(t *testing.T) {
	t.Parallel()
	log := []string{points("a", 1, 5)}
	pool, p := valued(t, log)
	execute(t, pool, `UPDATE n SET v = 9; CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
		CREATE TRIGGER nothing BEFORE UPDATE ON n FOR EACH ROW EXECUTE FUNCTION nothing()`)
	if _, _, err := rebuilt(t, pool, p, log); err == nil || !strings.Contains(errclass.Safe(err), "of table n than differ: a trigger") {
		t.Errorf("%v", err)
	}
}

// Another session, such as a repair, inserts a row that the swap is about to insert. The swap waits
// for that session and then compares again.
func TestARebuildWaitsForARowThatAnotherSessionInserts(t *testing.T) {
	t.Parallel()
	log := []string{points("a", 1, 5), points("b", 1, 6)}
	pool, p := valued(t, log)
	execute(t, pool, "DELETE FROM n WHERE k = 'a'; UPDATE n SET v = 9")
	opts := rebuild.SwapOptions{Topic: "events", Actor: "me"}
	replaced, _, err := rebuiltAs(t, pool, p, &log, opts, func() {
		tx, err := pool.Begin(t.Context())
		if err == nil {
			_, err = tx.Exec(t.Context(), "INSERT INTO n VALUES ('a', 5)")
		}
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, func() { _ = tx.Commit(context.WithoutCancel(t.Context())) })
	})
	if replaced != 1 || err != nil {
		t.Errorf("%d replaced, %v", replaced, err)
	}
	same(t, "rows", rows(t, pool, "SELECT * FROM n ORDER BY k"), []string{"a 5", "b 6"})
}

// The copy of another owner's table has no expressions, so a generated column of its key would be
// null there. A rebuild reports this before it reads the topic, instead of removing right rows.
func TestARebuildRefusesAGeneratedKeyOfAnotherOwner(t *testing.T) {
	t.Parallel()
	pool := stage(t)
	execute(t, pool, "CREATE TABLE n (k text, half text GENERATED ALWAYS AS (k || '/2') STORED, PRIMARY KEY (k, half))")
	p := parse(t, unusual+"n\nINSERT INTO n SELECT account_id FROM new_events;\n")
	log := []string{points("a", 1, 5)}
	feed(t, pool, p).consume(log)
	execute(t, pool, "ALTER TABLE n OWNER TO pg_monitor")
	_, _, err := rebuilt(t, pool, p, log)
	if table, is := errors.AsType[*rebuild.TableError](err); !is || !strings.Contains(table.Error(), "column half of the primary key of table n is generated") {
		t.Errorf("%v", err)
	}
	same(t, "rows", rows(t, pool, "SELECT * FROM n"), []string{"a a/2"})
}

// Nor does the copy of another owner's table have its computed defaults. A column with such a default
// would be null there, so a rebuild would replace right values. It is refused if the SQL does not set the
// column.
func TestARebuildRefusesADefaultOfAnotherOwner(t *testing.T) {
	t.Parallel()
	log := []string{points("a", 1, 5), points("b", 1, 6)}
	for column, refused := range map[string]bool{
		"v text DEFAULT lower('NEW')": true, "v bigserial": true, "v bigint GENERATED BY DEFAULT AS IDENTITY": true, "v text DEFAULT 'new'": false, "v text": false,
	} {
		t.Run(column, func(t *testing.T) {
			t.Parallel()
			pool := stage(t)
			execute(t, pool, "CREATE TABLE n (k text PRIMARY KEY, "+column+", w bigint DEFAULT pg_backend_pid())")
			p := parse(t, unusual+"n\nINSERT INTO n (k, w) SELECT account_id, 1 FROM new_events;\n")
			feed(t, pool, p).consume(log)
			execute(t, pool, "ALTER TABLE n OWNER TO pg_monitor; UPDATE n SET w = 2 WHERE k = 'a'")
			want := rows(t, pool, "SELECT * FROM n ORDER BY k")
			replaced, removed, err := rebuilt(t, pool, p, log)
			table, is := errors.AsType[*rebuild.TableError](err)
			switch {
			case refused && (!is || !strings.Contains(table.Error(), "column v of table n")):
				t.Errorf("%d replaced, %d removed, %v", replaced, removed, err)
			case refused:
				same(t, "rows", rows(t, pool, "SELECT * FROM n ORDER BY k"), want)
			case replaced != 1 || removed != 0 || err != nil:
				t.Errorf("%d replaced, %d removed, %v", replaced, removed, err)
			}
		})
	}
}

// PostgreSQL has no ON CONFLICT for a deferrable primary key. A rebuild reports this before it reads the
// topic.
func TestARebuildRefusesADeferrableKey(t *testing.T) {
	t.Parallel()
	log := []string{points("a", 1, 5), points("b", 1, 6)}
	pool, p := valued(t, log)
	execute(t, pool, "DELETE FROM n WHERE k = 'a'; ALTER TABLE n DROP CONSTRAINT n_pkey; ALTER TABLE n ADD PRIMARY KEY (k) DEFERRABLE")
	_, _, err := rebuilt(t, pool, p, log)
	if table, is := errors.AsType[*rebuild.TableError](err); !is || !strings.Contains(table.Error(), "the primary key of table n is DEFERRABLE") {
		t.Errorf("%v", err)
	}
	execute(t, pool, "ALTER TABLE n DROP CONSTRAINT n_pkey; ALTER TABLE n ADD PRIMARY KEY (k)")
	if replaced, removed, err := rebuilt(t, pool, p, log); replaced != 1 || removed != 0 || err != nil {
		t.Errorf("%d replaced, %d removed, %v", replaced, removed, err)
	}
}
