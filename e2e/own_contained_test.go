package e2e_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"projector/sql"
)

// appTeam creates the owner of a custom projection's tables, and triggers and functions of this
// owner that attack. This code tries to write the table secret, which the login of the instance may
// write but the SQL of a projection may not. This code catches its own errors, so the flush
// continues.
const appTeam = `CREATE ROLE bank_team LOGIN PASSWORD '%[1]s';
	CREATE SCHEMA app AUTHORIZATION bank_team;
	CREATE TABLE secret (way text, by name DEFAULT current_user); GRANT INSERT ON secret TO bank_app;
	SET ROLE bank_team;
	CREATE TABLE app.stamps (event_id text, n int DEFAULT 0);
	CREATE TABLE app.late (event_id text, n int DEFAULT 0);
	CREATE TABLE app.endless (event_id text, n int DEFAULT 0);
	CREATE TABLE app.apart (event_id text, n int DEFAULT 0, EXCLUDE USING btree (event_id WITH =) DEFERRABLE INITIALLY DEFERRED);
	CREATE FUNCTION app.strike(way text) RETURNS text LANGUAGE plpgsql AS $$
	BEGIN
		BEGIN PERFORM set_config('role', 'none', true); EXCEPTION WHEN OTHERS THEN NULL; END;
		BEGIN RESET ROLE; EXCEPTION WHEN OTHERS THEN NULL; END;
		BEGIN SET LOCAL ROLE bank_app; EXCEPTION WHEN OTHERS THEN NULL; END;
		BEGIN SET SESSION AUTHORIZATION DEFAULT; EXCEPTION WHEN OTHERS THEN NULL; END;
		BEGIN INSERT INTO public.secret (way) VALUES (way); EXCEPTION WHEN OTHERS THEN NULL; END;
		RETURN way;
	END $$;
	CREATE FUNCTION app.planned(way text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN app.strike(way); END $$;
	CREATE FUNCTION app.on_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM app.strike(TG_TABLE_NAME); RETURN NULL; END $$;
	CREATE CONSTRAINT TRIGGER late AFTER INSERT ON app.late DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION app.on_commit();
	CREATE FUNCTION app.again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		PERFORM app.strike(TG_TABLE_NAME);
		IF NEW.n < 5 THEN SET CONSTRAINTS ALL DEFERRED; INSERT INTO app.endless VALUES (NEW.event_id, NEW.n + 1); END IF;
		RETURN NULL;
	END $$;
	CREATE CONSTRAINT TRIGGER again AFTER INSERT ON app.endless DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION app.again();
	GRANT USAGE ON SCHEMA app TO projector_projection;
	GRANT ALL ON ALL TABLES IN SCHEMA app TO projector_projection;
	RESET ROLE`

// TestTheSQLOfAProjectionStaysInItsRole tries to run the SQL of a projection file, and the code of
// the tables' owner, with the rights of the instance's login. Each attempt must fail.
func TestTheSQLOfAProjectionStaysInItsRole(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	r.mustAs("bank_migrate", "migrate")
	r.exec(fmt.Sprintf(appTeam, rolesPassword))
	r.produce(r.shortStream())
	// guard is the name of the statement position_move among the prepared statements of pgx.
	guard := fmt.Sprintf("stmtcache_%x", sha256.Sum256([]byte(sql.Query("position_move"))))
	guard = guard[:len("stmtcache_")+48]
	for _, c := range []struct {
		way, sql string
		refused  string // error that the instance must report; if empty, the events must be processed and secret must stay empty
	}{
		{"late trigger", "INSERT INTO app.late SELECT event_id FROM new_events", ""},
		{"endless trigger", "INSERT INTO app.endless SELECT event_id FROM new_events", "defers"},
		{"set_config", "INSERT INTO app.stamps SELECT app.strike('set_config') FROM new_events", ""},
		{"DO", "DO $$ BEGIN PERFORM app.strike('DO'); END $$", ""},
		{"role and back", "DO $$ BEGIN PERFORM set_config('role', 'none', true); INSERT INTO public.secret (way) VALUES ('back'); PERFORM set_config('role', 'projector_projection', true); END $$", "42501"},
		{"held cursor", "DO $$ BEGIN EXECUTE 'DECLARE held CURSOR WITH HOLD FOR SELECT app.strike(''held cursor'')'; END $$", ""},
		{"while planning", "INSERT INTO app.stamps SELECT app.planned('while planning') FROM new_events", ""},
		{"while planning a constant", "INSERT INTO app.stamps SELECT event_id FROM new_events WHERE app.planned('constant') <> ''", ""},
		{"prepared statement", "DO $$ BEGIN BEGIN EXECUTE 'DEALLOCATE " + guard + "'; EXCEPTION WHEN OTHERS THEN NULL; END; " +
			"EXECUTE 'PREPARE " + guard + " AS SELECT app.strike(''prepared'')'; END $$", "prepared statement"},
		{"prepared statement of what fails", "DO $$ BEGIN BEGIN EXECUTE 'DEALLOCATE " + guard + "'; EXCEPTION WHEN OTHERS THEN NULL; END; " +
			"EXECUTE 'PREPARE " + guard + " AS SELECT app.strike(''prepared'')'; RAISE SQLSTATE '42P17'; END $$", "42P17"},
		{"search path", "DO $$ BEGIN SET search_path = app, public; PERFORM app.strike('search path'); END $$", ""},
		{"temporary table", "DO $$ BEGIN CREATE TEMP TABLE projector_position AS SELECT * FROM app.stamps; END $$", "42501"},
	} {
		name := "p_" + strings.Map(func(c rune) rune {
			if c < 'a' || c > 'z' {
				return '_'
			}
			return c
		}, strings.ToLower(c.way))
		r.runsFile(name, c.sql, c.refused)
		r.nothingLeaked(c.way)
	}
	r.exec("GRANT TEMPORARY ON DATABASE " + quoted(r.db.Config().ConnConfig.Database) + " TO projector_projection") // an administrator grants it by mistake
	r.runsFile("p_temporary_granted", "DO $$ BEGIN CREATE TEMP TABLE IF NOT EXISTS projector_position AS SELECT * FROM app.stamps; END $$", "a temporary object")
	r.exec("REVOKE TEMPORARY ON DATABASE " + quoted(r.db.Config().ConnConfig.Database) + " FROM projector_projection")
	// These changes to the function are possible, because projector_projection owns it.
	const function = "ALTER FUNCTION public.projector_contained(text, boolean, text) "
	r.exec("SET ROLE projector_projection; " + function + "SECURITY INVOKER; RESET ROLE")
	r.runsFile("p_invoker", "INSERT INTO app.stamps SELECT app.strike('invoker') FROM new_events", "not contained")
	r.nothingLeaked("the function as its caller")
	r.exec("SET ROLE projector_projection; " + function + "SET role = 'projector_projection'; RESET ROLE")
	r.runsFile("p_invoker_in_the_role", "INSERT INTO app.stamps SELECT app.strike('role') FROM new_events", "not contained")
	r.nothingLeaked("the function as its caller, in the role")
	r.rolesFile() // must repair the function
	r.runsFile("p_after", "INSERT INTO app.stamps SELECT event_id FROM new_events", "")
}

// nothingLeaked fails the test if the table secret has a row. The parameter way names the attack.
func (r *roles) nothingLeaked(way string) {
	r.t.Helper()
	var leaked string
	if err := r.db.QueryRow(r.t.Context(), "SELECT coalesce(string_agg(DISTINCT way || ' as ' || by, ', '), '') FROM secret").Scan(&leaked); err != nil || leaked != "" {
		r.t.Errorf("%s: has written as another: %s %v", way, leaked, err)
	}
	r.exec("TRUNCATE secret")
}

// runsFile runs a projection of one statement. It waits until the events are processed or, if
// refused is not empty, until the instance reports that error.
func (r *roles) runsFile(name, statement, refused string) {
	r.t.Helper()
	path := filepath.Join(r.t.TempDir(), name+".sql")
	text := "-- projection: " + name + "\n-- mode: once\n-- types: FundsCredited\n" + statement + ";\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	p := launch(r.t, []string{rolesPassword}, r.connection("bank_app"), r.flags("--projection-file="+path, "--group="+name)...)
	defer p.terminate()
	if refused != "" {
		await(r.t, name+" is refused", p.answers("/readyz", 503, refused))
		return
	}
	await(r.t, name+" is at the end", func() string {
		var behind int
		err := r.db.QueryRow(r.t.Context(), `SELECT count(*) FROM unnest($1::bigint[]) WITH ORDINALITY AS e (at, n)
			WHERE NOT EXISTS (SELECT FROM projector_position WHERE consumer_group = $2 AND partition = e.n - 1 AND next_offset >= e.at)`,
			[]int64{r.ends(r.topic)[0], r.ends(r.topic)[1]}, name).Scan(&behind)
		if err != nil {
			return err.Error()
		}
		if behind > 0 {
			return fmt.Sprintf("%d partitions are behind", behind)
		}
		return ""
	})
}
