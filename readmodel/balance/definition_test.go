package balance_test

import (
	"cmp"
	"context"
	"testing"

	"projector/internal/devstack/devtest"
	"projector/readmodel"
	"projector/readmodel/balance"
	"projector/readmodel/readmodeltest"
)

func TestReadyNoticesGrantsAndColumns(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"grant":   "REVOKE UPDATE ON account_balance FROM plain",
		"table":   "ALTER TABLE account_balance RENAME TO elsewhere",
		"column":  "ALTER TABLE account_balance RENAME COLUMN updated_at TO written_at",
		"nothing": "SELECT 1",
	}
	for name, damage := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pg := devtest.Postgres(t)
			if _, err := readmodel.Migrate(t.Context(), pg.URL()); err != nil {
				t.Fatal(err)
			}
			pool, err := readmodel.OpenPool(t.Context(), pg.URL())
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			for _, s := range []string{
				"CREATE ROLE plain", "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO plain",
				damage, "ALTER ROLE postgres SET role = 'plain'",
			} {
				if _, err := pool.Exec(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			}
			pool.Reset()
			if err := (balance.Definition{}).Ready(t.Context(), pool); (err == nil) != (name == "nothing") {
				t.Errorf("error %v", err)
			}
		})
	}
}

// counted is an Observer that has the counts of parked events.
type counted struct {
	readmodeltest.Observer
	parked []readmodel.ParkedSummary
}

func (c *counted) Parked(s readmodel.ParkedSummary) { c.parked = append(c.parked, s) }

// TestASlowCountOfParkedEventsIsReported shows that a count that takes several seconds is still
// reported. Millions of parked events take that long, and their alerts need the count. Such a count
// is not repeated at once.
func TestASlowCountOfParkedEventsIsReported(t *testing.T) {
	t.Parallel()
	pool := readmodeltest.OpenPool(t)
	_, err := pool.Exec(t.Context(), `DO $$ BEGIN EXECUTE 'CREATE OR REPLACE VIEW account_hold AS SELECT h.* FROM pg_sleep(5.5), ('
		|| rtrim(pg_get_viewdef('account_hold'), ';') || ') AS h'; END $$`)
	if err != nil {
		t.Fatal(err)
	}
	observer := &counted{}
	task := balance.Definition{}.Tasks(readmodel.RunConfig{Pool: pool, Observer: observer})[0]
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(task.Within, task.Every))
		err := task.Run(ctx)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(observer.parked) != 1 {
		t.Errorf("counted %d times", len(observer.parked))
	}
}
