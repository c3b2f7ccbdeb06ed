package readmodel_test

import (
	"errors"
	"strings"
	"testing"

	"projector/errclass"
	"projector/faulttest/pgproxy"
	"projector/internal/devstack/devtest"
	"projector/readmodel"
)

func TestTheURLBoundsThePool(t *testing.T) {
	for query, want := range map[string]int32{"": 10, "?pool_max_conns=4": 4, "?pool_max_conns=25&sslmode=disable": 25} {
		pool, err := readmodel.OpenPool(t.Context(), "postgres://nobody@127.0.0.1:1/none"+query)
		if err != nil {
			t.Fatal(err)
		}
		if got := pool.Config().MaxConns; got != want {
			t.Errorf("%q: %d connections, want %d", query, got, want)
		}
		pool.Close()
	}
	if _, err := readmodel.OpenPool(t.Context(), "postgres://nobody@127.0.0.1:1/none?pool_max_conns=3"); err == nil ||
		!strings.Contains(err.Error(), "pool_max_conns") {
		t.Errorf("3 connections: %v", err)
	}
}

func TestTheURLHasTheLastWordOnASession(t *testing.T) {
	t.Parallel()
	url := devtest.Database(t)
	for query, want := range map[string]string{"": "off force_generic_plan off", "&jit=on&plan_cache_mode=auto&enable_seqscan=on": "on auto on"} {
		var got string
		if err := openPoolAt(t, url+query).QueryRow(t.Context(), `
			SELECT concat_ws(' ', current_setting('jit'), current_setting('plan_cache_mode'), current_setting('enable_seqscan'))`).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%q: jit, plan_cache_mode and enable_seqscan are %s, want %s", query, got, want)
		}
	}
}

// TestTheLoginCannotChangeTheEncoding gives the database settings with which PostgreSQL would store
// other characters, and would read a backslash in a statement as an escape.
func TestTheLoginCannotChangeTheEncoding(t *testing.T) {
	t.Parallel()
	url := devtest.Database(t)
	exec(t, openPoolAt(t, url), `DO $$ BEGIN
		EXECUTE format('ALTER DATABASE %I SET client_encoding = latin1', current_database());
		EXECUTE format('ALTER DATABASE %I SET standard_conforming_strings = off', current_database());
	END $$`)
	for _, query := range []string{"", "&client_encoding=latin1&standard_conforming_strings=off", "&options=-c%20client_encoding%3Dlatin1"} {
		var (
			bytes        int
			euro, escape string
		)
		if err := openPoolAt(t, url+query).QueryRow(t.Context(), `SELECT octet_length(convert_to($1::text, 'UTF8')), chr(8364), 'a\1'`, "Müller").
			Scan(&bytes, &euro, &escape); err != nil || bytes != 7 || euro != "€" || escape != `a\1` {
			t.Errorf("%q: Müller has %d bytes, want 7; %q, want €; %q, error %v", query, bytes, euro, escape, err)
		}
	}
}

// A migration that exceeds a time limit of the login names the remedy.
func TestAMigrationBeyondATimeLimitNamesTheRemedy(t *testing.T) {
	t.Parallel()
	url := devtest.Database(t)
	pool := openPoolAt(t, url)
	exec(t, pool, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET lock_timeout = 50', current_database()); END $$`)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "LOCK TABLE projector_schema_version"); err != nil {
		t.Fatal(err)
	}
	if _, err := readmodel.Migrate(t.Context(), url); err == nil || !strings.Contains(errclass.Safe(err), "?statement_timeout=0&lock_timeout=1min") {
		t.Errorf("%v", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := readmodel.Migrate(t.Context(), url+"&lock_timeout=1min"); err != nil {
		t.Error(err)
	}
}

// A pooler may ignore the search_path that a connection requests. The tables of another schema would
// then be used.
func TestASearchPathThatIsIgnoredIsRefused(t *testing.T) {
	t.Parallel()
	proxy, through, err := pgproxy.ListenBefore(devtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	for _, c := range []struct{ ignore, query, refused string }{
		{"", "", ""},
		{"search_path", "", ""},
		{"", "&search_path=bank,public", ""},
		{"search_path", "&search_path=bank,public", "search_path"},
		{"", "&options=-c%20search_path%3D%22bank%5C%20a%22", ""},
		{"", "&options=-csearch_path%3Da%20--search-path%3Dbank%20-cjit%3Don", ""},
		{"options", "&options=-cjit%3Don", ""},
		{"options", "&options=-c%20search_path%3D%22bank%5C%20a%22", "search_path"},
		{"options", "&options=-csearch_path%3Da%20--search-path%3Dbank", "search_path"},
	} {
		proxy.Ignore(c.ignore)
		var path string
		err := openPoolAt(t, through+c.query).QueryRow(t.Context(), "SHOW search_path").Scan(&path)
		if (err != nil) != (c.refused != "") || err != nil && !strings.Contains(errclass.Safe(err), c.refused) {
			t.Errorf("%q through a pooler that ignores %q: %q, %v", c.query, c.ignore, path, err)
		}
	}
	proxy.Ignore("search_path")
	if done, err := readmodel.Migrate(t.Context(), through+"&search_path=bank"); err == nil || !strings.Contains(errclass.Safe(err), "search_path") {
		t.Errorf("migrated %d, %v", len(done), err)
	}
	// A consumer ends if the check of the schema returns an Unfit. A pooler may be corrected.
	err = readmodel.CheckSchema(t.Context(), openPoolAt(t, through+"&search_path=bank"))
	if _, ends := errors.AsType[readmodel.Unfit](err); ends || err == nil || !strings.Contains(errclass.Safe(err), "search_path") {
		t.Errorf("the check of the schema: %v, which ends a consumer: %t", err, ends)
	}
}

// TestASchemaBeforeTheTablesGetsNone puts a schema before that of the tables. New, empty tables would
// hide those that are in use, so they are made only if the URL asks for them.
func TestASchemaBeforeTheTablesGetsNone(t *testing.T) {
	t.Parallel()
	url := devtest.Database(t)
	exec(t, openPoolAt(t, url), `CREATE SCHEMA another;
		DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = another, public', current_database()); END $$`)
	if done, err := readmodel.Migrate(t.Context(), url); err == nil || !strings.Contains(errclass.Safe(err), "search_path=public") {
		t.Errorf("applied %d, error %v", len(done), err)
	}
	expect(t, lines(t, openPoolAt(t, url), "SELECT count(*)::text FROM pg_tables WHERE schemaname = 'another'"), "0")
	if done, err := readmodel.Migrate(t.Context(), url+"&search_path=public"); err != nil || len(done) != 0 {
		t.Errorf("in public: applied %d, error %v", len(done), err)
	}
	if done, err := readmodel.Migrate(t.Context(), url+"&search_path=another"); err != nil || len(done) == 0 {
		t.Errorf("on purpose: applied %d, error %v", len(done), err)
	}
}
