package balance_test

import (
	"testing"

	"projector/internal/devstack/devtest"
	"projector/readmodel"
	"projector/readmodel/balance"
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
