package account_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"projector/internal/cli/clitest"
)

// TestErasingAnAccount runs the SQL of docs/security.md that erases one account. After that, no
// table with a column account_id has a row of the account, except the audit trail.
func TestErasingAnAccount(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)### Erasing one account.*?```sql\n(.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("docs/security.md has no statements that erase an account")
	}
	s := clitest.NewStage(t)
	s.SeveralDeadLetters()
	s.UseProjection("account_statement")
	s.Consuming(nil)
	s.Exec(strings.ReplaceAll(string(block[1]), "acc-00000042", "acc-a"))

	rows, err := s.Pool.Query(t.Context(), `SELECT c.table_name FROM information_schema.columns c JOIN information_schema.tables t
		USING (table_schema, table_name) WHERE c.column_name = 'account_id' AND t.table_type = 'BASE TABLE' AND c.table_schema = current_schema()`)
	if err != nil {
		t.Fatal(err)
	}
	tables := 0
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range names {
		if table == "dlq_action" {
			continue // the audit trail is not erased
		}
		tables++
		var left int
		if err := s.Pool.QueryRow(t.Context(), "SELECT count(*) FROM "+table+" WHERE account_id = 'acc-a'").Scan(&left); err != nil || left > 0 {
			t.Errorf("%s: %d rows are left, %v", table, left, err)
		}
	}
	if tables < 8 {
		t.Errorf("only %d tables name an account", tables)
	}
	var others int
	if err := s.Pool.QueryRow(t.Context(), "SELECT count(*) FROM parked_event WHERE account_id = 'acc-b'").Scan(&others); err != nil || others == 0 {
		t.Errorf("of acc-b %d events are parked, %v", others, err)
	}
}
