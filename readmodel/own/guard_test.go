package own_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/errclass"
	"projector/projection"
	"projector/projection/file"
	"projector/readmodel"
	"projector/readmodel/own"
	"projector/sql"
)

const header = "-- projection: loyalty_points\n-- mode: %s\n-- types: PointsEarned\n"

// The function refusal flushes one event and returns the error.
func refusal(t *testing.T, pool *pgxpool.Pool, p file.Projection) error {
	t.Helper()
	f := feed(t, pool, p)
	err := f.try([]string{points("a", 1, 5)})
	if len(f.driver.letters) > 0 {
		t.Errorf("dead letters: %v", f.driver.classes())
	}
	same(t, "position", rows(t, pool, "SELECT next_offset FROM projector_position"), []string{"0"})
	return err
}

func TestAWrongStatementIsNotTheEventsFault(t *testing.T) {
	t.Parallel()
	pool := stage(t)
	execute(t, pool, `CREATE FUNCTION sly() RETURNS bigint LANGUAGE sql AS 'DELETE FROM account_balance; SELECT 1::bigint';
		CREATE FUNCTION committing() RETURNS void LANGUAGE plpgsql AS 'BEGIN COMMIT; END';
		INSERT INTO account_balance (account_id, balance, version) VALUES ('x', 1, 1);
		INSERT INTO inbox (message_id, handler) VALUES ('x', 'another')`)
	for name, c := range map[string]struct {
		sql     string
		line    int
		seen    bool // whether Check finds the error
		message string
	}{
		"no table":            {"INSERT INTO seen SELECT event_id, 1 FROM new_events;\nINSERT INTO nowhere SELECT 1;", 5, true, "42P01"},
		"no column":           {"INSERT INTO seen\nSELECT event, 1 FROM new_events;", 5, true, "42703"},
		"the projector's own": {"UPDATE account_balance SET balance = 0;", 4, true, "account_balance, which is the projector's own"},
		"in a CTE":            {"WITH d AS (DELETE FROM inbox RETURNING 1) INSERT INTO seen SELECT '', 1 FROM d;", 4, true, "inbox, which is the projector's own"},
		"after a comment":     {"DELETE/* all */FROM inbox;", 4, true, "inbox, which is the projector's own"},
		"in a function":       {"INSERT INTO seen SELECT event_id, sly() FROM new_events;", 0, false, "account_balance, which is the projector's own"},
		"truncated":           {"TRUNCATE parked_event;", 0, false, "parked_event, which is the projector's own"},
		"a commit":            {"SELECT committing();", 4, false, "2D000"},
	} {
		for _, mode := range []file.Mode{file.Once, file.Ordered} {
			t.Run(name+" "+string(mode), func(t *testing.T) {
				p := parse(t, fmt.Sprintf(header, mode)+c.sql)
				err := own.Check(t.Context(), pool, p)
				var found *own.StatementError
				if seen := errors.As(err, &found); seen != c.seen || seen && found.Line != c.line {
					t.Errorf("check: %v, line %+v", err, found)
				}
				err = refusal(t, pool, p)
				if class := errclass.Postgres(err); class != errclass.RetryUnready && !strings.HasPrefix(c.message, "2D") || class == errclass.Isolate {
					t.Errorf("the flush: %v, class %s", err, class)
				}
				if text := errclass.Safe(err); !strings.Contains(text, c.message) {
					t.Errorf("the flush says %q", text)
				}
			})
		}
	}
	same(t, "balances", rows(t, pool, "SELECT account_id FROM account_balance WHERE balance = 1"), []string{"x"})
}

// A table of another schema may have the name of one of the projector's own tables.
func TestATableOfAnotherSchemaIsNotTheProjectors(t *testing.T) {
	t.Parallel()
	pool := stage(t)
	execute(t, pool, "CREATE SCHEMA shop; CREATE TABLE shop.inbox (id text); GRANT USAGE ON SCHEMA shop TO PUBLIC; GRANT INSERT ON shop.inbox TO PUBLIC")
	p := parse(t, fmt.Sprintf(header, file.Once)+"INSERT INTO shop.inbox SELECT event_id FROM new_events;")
	if err := own.Check(t.Context(), pool, p); err != nil {
		t.Errorf("check: %v", err)
	}
	if err := feed(t, pool, p).try([]string{points("a", 1, 5)}); err != nil {
		t.Errorf("flush: %v", err)
	}
	same(t, "rows", rows(t, pool, "SELECT id FROM shop.inbox"), []string{"a-1"})
}

// The login has the grants of roles.sql. The SQL of the projection runs under the role
// projector_projection.
func TestTheSQLRunsUnderARoleOfItsOwn(t *testing.T) {
	t.Parallel()
	owner := stage(t)
	login := "own_" + strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(owner.Config().ConnConfig.Database, "projector_test"), "-", "_"))
	execute(t, owner, sql.Roles())
	execute(t, owner, "CREATE ROLE "+login+" LOGIN PASSWORD 'own' IN ROLE projector_runtime")
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_, _ = owner.Exec(ctx, "DROP OWNED BY "+login+"; DROP ROLE "+login)
	})
	cfg := owner.Config()
	cfg.BeforeConnect = nil
	cfg.ConnConfig.User, cfg.ConnConfig.Password = login, "own"
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)

	for _, mode := range []file.Mode{file.Once, file.Ordered} {
		p := parse(t, strings.Replace(fmt.Sprintf(loyalty, mode), "loyalty_points", "loyalty_"+string(mode), 1))
		err := own.Check(t.Context(), pool, p)
		var found *own.StatementError
		if errclass.Postgres(err) != errclass.RetryUnready || !errors.As(err, &found) {
			t.Errorf("without a grant: %v", err)
		} else {
			same(t, "grants", found.Grants, []string{"GRANT INSERT, SELECT, UPDATE ON loyalty TO projector_projection;", "GRANT INSERT ON seen TO projector_projection;"})
		}
		if err := own.Definition(p).Ready(t.Context(), pool); errclass.Postgres(err) != errclass.RetryUnready {
			t.Errorf("without a grant: %v", err)
		}
	}
	execute(t, owner, "GRANT SELECT, INSERT, UPDATE ON loyalty, seen TO projector_projection")
	for _, mode := range []file.Mode{file.Once, file.Ordered} {
		p := parse(t, strings.Replace(fmt.Sprintf(loyalty, mode), "loyalty_points", "loyalty_"+string(mode), 1))
		if err := own.Definition(p).Ready(t.Context(), pool); err != nil {
			t.Errorf("ready: %v", err)
		}
		f := feedAs(t, pool, p, p.Name)
		f.consume([]string{points("a", 1, 5), points("b", 2, 1), points("b", 1, 1)})
	}
	same(t, "rows", rows(t, owner, "SELECT account_id, points FROM loyalty ORDER BY account_id"), []string{"a 10", "b 4"})

	// The login may delete from inbox. The role that runs the projection's SQL may not delete from
	// it.
	p := parse(t, fmt.Sprintf(header, file.Once)+"DELETE FROM inbox;")
	if err := own.Check(t.Context(), pool, p); errclass.Postgres(err) != errclass.RetryUnready || !strings.Contains(err.Error(), "may not touch inbox") {
		t.Errorf("check: %v", err)
	}
}

// A consumer that still has the old text of the file can write nothing more.
func TestAnotherTextStopsTheOldOne(t *testing.T) {
	t.Parallel()
	for _, mode := range []file.Mode{file.Once, file.Ordered} {
		pool := stage(t)
		p := parse(t, fmt.Sprintf(loyalty, mode))
		f := feed(t, pool, p)
		f.consume([]string{points("a", 1, 5)})
		execute(t, pool, "INSERT INTO projection_file (projection, sha256, mode, text) VALUES ('loyalty_points', 'other', '"+string(mode)+"', '')")
		err := f.try([]string{points("a", 2, 5)})
		var changed *readmodel.FileChangedError
		if !errors.As(err, &changed) || errclass.Postgres(err) != errclass.RetryUnready {
			t.Errorf("%s: %v", mode, err)
		}
		if err := own.Definition(p).Ready(t.Context(), pool); !errors.As(err, &changed) {
			t.Errorf("%s: ready: %v", mode, err)
		}
		same(t, "rows", rows(t, pool, "SELECT points FROM loyalty"), []string{"5"})
	}
}

// Two workers believe that they own the same partition. Nothing that the stale worker writes is
// committed before it claims the partition again.
func TestAStaleOwnerWritesNothing(t *testing.T) {
	t.Parallel()
	for _, mode := range []file.Mode{file.Once, file.Ordered} {
		pool := stage(t)
		p := parse(t, fmt.Sprintf(loyalty, mode))
		stale := feed(t, pool, p)
		log := []string{points("a", 1, 5), points("a", 2, 1)}
		feed(t, pool, p).consume(log)
		if err := stale.proj.Verify(t.Context()); !errors.Is(err, projection.ErrFenced) {
			t.Errorf("%s: the stale owner verifies: %v", mode, err)
		}
		stale.consume(log)
		same(t, "rows", rows(t, pool, "SELECT points, events FROM loyalty"), []string{"6 2"})
	}
}
