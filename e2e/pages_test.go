package e2e_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestStatementsOfThePagesNeedNoOtherRole runs the SQL of the pages as the role that the page
// is for: readers have docs/read-model.md, operators docs/repairs.md.
func TestStatementsOfThePagesNeedNoOtherRole(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	r.mustAs("bank_migrate", "migrate")
	for page, user := range map[string]string{"read-model.md": "bank_reader", "repairs.md": "bank_operator"} {
		text, err := os.ReadFile("../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		blocks := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(text), -1)
		if len(blocks) < 2 {
			t.Errorf("%s has %d blocks of SQL", page, len(blocks))
		}
		s := r.session(user)
		for _, block := range blocks {
			for statement := range strings.SplitSeq(regexp.MustCompile(`--.*`).ReplaceAllString(block[1], ""), ";") {
				if strings.TrimSpace(statement) != "" {
					s.may(statement, true)
				}
			}
		}
	}
}
