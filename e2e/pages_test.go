package e2e_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// sqlOf returns the SQL blocks of a page. It omits the blocks of a numbered list, because they are
// steps on two servers. TestMovedByLogicalReplication runs these steps.
func sqlOf(t testing.TB, page string) []string {
	t.Helper()
	text, err := os.ReadFile("../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, block := range regexp.MustCompile("(?ms)^```sql\n(.*?)\n```").FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, block[1])
	}
	if len(blocks) == 0 {
		t.Fatalf("%s has no SQL", page)
	}
	return blocks
}

// logins returns the SQL of docs/security.md that creates the logins.
func logins(t testing.TB, password string) string {
	t.Helper()
	for _, block := range sqlOf(t, "security.md") {
		if strings.Contains(block, "CREATE ROLE") {
			return strings.ReplaceAll(block, "'…'", "'"+password+"'")
		}
	}
	t.Fatal("docs/security.md does not say how to make the logins")
	return ""
}

// TestStatementsOfThePagesNeedNoOtherRole runs the SQL of four pages. It runs the SQL of each page
// as the role that this page is for. It omits the SQL that creates the logins, because newRoles
// runs this SQL.
func TestStatementsOfThePagesNeedNoOtherRole(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	r.mustAs("bank_migrate", "migrate")
	database := pgx.Identifier{r.db.Config().ConnConfig.Database}.Sanitize()
	for page, user := range map[string]string{
		"read-model.md": "bank_reader", "repairs.md": "bank_operator", "security.md": "bank_migrate", "postgres.md": administrator,
	} {
		s := r.session(user)
		for _, block := range sqlOf(t, page) {
			if strings.Contains(block, "CREATE ROLE") {
				continue
			}
			block = strings.ReplaceAll(regexp.MustCompile(`--.*`).ReplaceAllString(block, ""), "DATABASE bank ", "DATABASE "+database+" ")
			for statement := range strings.SplitSeq(block, ";") {
				if strings.TrimSpace(statement) != "" {
					s.checkPrivilege(statement, true)
				}
			}
		}
	}
	// This part is about a custom projection: its tables, its grants, and the statements of its
	// file.
	tables, err := os.ReadFile("../docs/examples/tables.sql")
	if err != nil {
		t.Fatal(err)
	}
	made, _, _ := strings.Cut(string(tables), "DO $grants$")
	r.exec(made) // creates the tables on which the page grants rights
	file, grant, byHand := custom(t)
	r.exec(grant)
	r.session(administrator).checkPrivilege(strings.Replace(byHand, "-- the statements of the file", file, 1), true)
}

// The function custom returns the three SQL blocks of docs/own-projection.md.
func custom(t testing.TB) (file, grant, byHand string) {
	t.Helper()
	blocks := sqlOf(t, "own-projection.md")
	if len(blocks) != 3 {
		t.Fatalf("docs/own-projection.md has %d blocks of SQL, not 3", len(blocks))
	}
	return blocks[0], blocks[1], blocks[2]
}
