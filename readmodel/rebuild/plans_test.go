package rebuild

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"projector/internal/devstack/devtest"
	"projector/readmodel"
)

// While a swap holds its locks, consumers wait. The swap must therefore not read all accounts or all
// waiting events to compare a few accounts again. There are no statistics here, as in tables that
// were just filled.
func TestASwapReadsOnlyTheNotedAccounts(t *testing.T) {
	for _, label := range []string{"", "loyalty"} {
		t.Run("of "+label, func(t *testing.T) {
			pool, err := readmodel.OpenPool(t.Context(), devtest.Database(t))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pool.Close)
			s, err := newAccountState(t.Context(), pool, label, 100, 0)
			if err != nil {
				t.Fatal(err)
			}
			b, err := openSchema(t.Context(), pool, s.copied(), []string{s.account.Name})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = b.Close(context.Background()) })
			column, value := "", ""
			if label != "" {
				column, value = "projection, ", "'loyalty', "
			}
			for _, schema := range []string{"", shadowSchema + "."} {
				fill := fmt.Sprintf(`INSERT INTO %[1]s%[2]s (%[3]saccount_id, version, class, event_id, expected_version, topic, partition, "offset", record_timestamp, headers)
					SELECT %[4]s'acc-' || n, 3, 'version_gap', 'e-' || n, 2, 'events', 0, n, 0, '{}' FROM generate_series(1, 20000) AS n`, schema, s.parked.Name, column, value)
				if _, err := pool.Exec(t.Context(), fill); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := pool.Exec(t.Context(), s.account.fill.Query("rows_note"), `[{"account_id": "acc-1"}, {"account_id": "acc-2"}]`); err != nil {
				t.Fatal(err)
			}
			var plan []string
			err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(t.Context(), "SET LOCAL enable_seqscan = on"); err != nil {
					return err
				}
				rows, _ := tx.Query(t.Context(), "EXPLAIN "+s.account.fill.Query("rows_again"))
				plan, err = pgx.CollectRows(rows, pgx.RowTo[string])
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			text := strings.Join(plan, "\n")
			if strings.Contains(text, "Seq Scan on "+s.parked.Name) {
				t.Errorf("all waiting events are read:\n%s", text)
			}
		})
	}
}
