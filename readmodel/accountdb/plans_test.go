package accountdb_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"projector/sql"
)

// TestAccountsAreFoundByTheirKeys shows that the statements for some accounts do not scan other
// accounts. Each scan of a table must have a condition on its key, except in an EXISTS.
func TestAccountsAreFoundByTheirKeys(t *testing.T) {
	pool := openPool(t)
	tables := sql.AccountsOf("account_balance")
	for name, text := range map[string]string{
		"current_accounts": sql.Query("current_accounts"),
		"load_accounts":    tables.Query("load_accounts"), "load_holds": tables.Query("load_holds"), "load_versions": tables.Query("load_versions"),
	} {
		rows, _ := pool.Query(t.Context(), "EXPLAIN "+text, []string{"a", "b"})
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(name, err)
		}
		for i, line := range lines {
			unlimited := strings.Contains(line, " Scan using ") && !strings.Contains(lines[min(i+1, len(lines)-1)], "Cond:")
			if unlimited && !strings.Contains(line, "width=0)") || // EXISTS reads only one row
				strings.Contains(line, "Seq Scan") {
				t.Errorf("%s reads a whole table:\n%s", name, strings.Join(lines, "\n"))
				break
			}
		}
	}
}

// TestAReaderOfABalanceReadsOneAccount shows that a query for one account uses the index, even with
// many accounts.
func TestAReaderOfABalanceReadsOneAccount(t *testing.T) {
	pool := openPool(t)
	for _, statement := range []string{
		`INSERT INTO account_balance (account_id, balance, version) SELECT 'acc-' || n, 0, 1 FROM generate_series(1, 20000) AS n`,
		`ANALYZE account_balance`,
	} {
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := pool.Query(t.Context(), `EXPLAIN ANALYZE SELECT * FROM account_balance_current WHERE account_id = 'acc-77'`)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(plan, "\n"); !strings.Contains(all, "rows=1 ") || strings.Contains(all, "Rows Removed") {
		t.Errorf("the plan reads all accounts:\n%s", all)
	}
}
