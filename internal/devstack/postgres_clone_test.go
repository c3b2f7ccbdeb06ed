package devstack

import (
	"context"
	"testing"
	"time"
)

func clone(t *testing.T, p *Postgres, mode CloneMode) *Postgres {
	t.Helper()
	c, err := p.Clone(t.Context(), mode)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c
}

// eventually waits until a query returns want.
func eventually(t *testing.T, p *Postgres, query, want string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(2 * time.Minute); queryText(t, p.URL(), query) != want; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%s: got %s, want %s", query, queryText(t, p.URL(), query), want)
		}
	}
}

const count = "select count(*)::text from t"

func TestBackupIsOfItsTime(t *testing.T) {
	p := startPostgres(t, PostgresOptions{})
	runSQL(t, p.URL(), "create table t as select 1")
	backup := clone(t, p, Backup)
	runSQL(t, p.URL(), "insert into t values (2)")
	if err := backup.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := queryText(t, backup.URL(), count); got != "1" {
		t.Errorf("restored %s rows, want 1", got)
	}
}

func TestPromotedStandbyLacksWhatItHasNotHeard(t *testing.T) {
	p := startPostgres(t, PostgresOptions{})
	runSQL(t, p.URL(), "create table t as select 1")
	standby := clone(t, p, Standby)
	runSQL(t, p.URL(), "insert into t values (2)")
	eventually(t, standby, count, "2")
	if err := standby.Lag(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, p, "select count(*)::text from pg_stat_replication", "0")
	runSQL(t, p.URL(), "insert into t values (3)")
	if err := p.Stop(t.Context(), Immediate); err != nil {
		t.Fatal(err)
	}
	if err := standby.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := queryText(t, standby.URL(), count); got != "2" {
		t.Errorf("promoted with %s rows, want 2", got)
	}
	runSQL(t, standby.URL(), "insert into t values (4)")
}

func TestSettingsChangeAtRunTime(t *testing.T) {
	p := startPostgres(t, PostgresOptions{})
	for value, want := range map[string]string{"on": "on", "": "off"} {
		if err := p.Set(t.Context(), "default_transaction_read_only", value); err != nil {
			t.Fatal(err)
		}
		eventually(t, p, "select current_setting('default_transaction_read_only')", want)
	}
}
