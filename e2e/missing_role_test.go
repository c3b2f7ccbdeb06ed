package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"projector/internal/testbank"
)

// TestAMissingRoleIsNamed types every command that needs the database as a login of every
// role and of none: PostgreSQL's refusal comes with the role that the command needs.
func TestAMissingRoleIsNamed(t *testing.T) {
	r := newRoles(t)
	r.exec(fmt.Sprintf("CREATE ROLE bank_nobody LOGIN PASSWORD '%s'", rolesPassword))
	r.exec(fmt.Sprintf("GRANT CONNECT ON DATABASE %s TO bank_nobody", r.db.Config().ConnConfig.Database))
	if status, stderr := r.as("bank_migrate", "migrate"); status != 0 {
		t.Fatal(stderr)
	}
	r.produce([]testbank.Record{{Value: []byte("not an event")}})
	reason := "--reason=test"
	operator, anybody := []string{"bank_operator", "bank_approver"}, []string{"bank_operator", "bank_approver", "bank_reader", "bank_app"}
	for command, of := range map[string]struct {
		args []string
		role string
		may  []string // the logins that have what it needs; others of them may, for all this test says
	}{
		"migrate":           {nil, "projector_migrator", []string{"bank_migrate"}},
		"gaps":              {nil, "projector_operator", operator},
		"dlq list":          {nil, "projector_operator", operator},
		"dlq summary":       {nil, "projector_operator", operator},
		"account show":      {[]string{"a"}, "projector_operator", operator},
		"account skip":      {[]string{"a", "--version=1", reason, "--yes"}, "projector_operator", operator},
		"account statement": {[]string{"a"}, "projector_reader or projector_operator", anybody[:3]},
		"position":          {nil, "projector_operator", operator},
		"position remove":   {[]string{"--group=unused", reason, "--yes"}, "projector_migrator", []string{"bank_migrate"}},
		"position set":      {[]string{"--all", "--start", "--new-group", reason, "--yes"}, "projector_operator", operator},
		"pause":             {[]string{"--all", "--new-group", reason, "--yes"}, "projector_operator", operator},
		"resume":            {[]string{"--all", "--new-group", reason, "--yes"}, "projector_operator", operator},
		"audit":             {nil, "projector_operator", operator},
		"requests":          {nil, "projector_operator", operator},
		"approve":           {[]string{"1", reason}, "projector_approver", []string{"bank_approver"}},
		"reject":            {[]string{"1", reason}, "projector_approver", []string{"bank_approver"}},
		"inbox prune":       {nil, "projector_operator", operator},
		"rebuild":           {[]string{"--yes"}, "projector_operator", operator},
	} {
		for _, user := range []string{"bank_migrate", "bank_app", "bank_operator", "bank_approver", "bank_reader", "bank_nobody"} {
			_, _, stderr := once(t, append(r.connection(user), "KAFKA_TOPIC="+r.topic), append(strings.Fields(command), of.args...)...)
			refused := strings.Contains(stderr, "42501")
			if refused && (slices.Contains(of.may, user) || !strings.Contains(stderr, of.role) || !strings.Contains(stderr, "docs/security.md")) {
				t.Errorf("%s as %s: %s", command, user, stderr)
			}
			if user == "bank_nobody" && !refused {
				t.Errorf("%s as a login without a role: %s", command, stderr)
			}
		}
	}
}
