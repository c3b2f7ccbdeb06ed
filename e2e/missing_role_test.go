package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"projector/internal/testbank"
)

// commandLine is one command line of the test. The field role is the name that the error must
// contain when rights are missing. The field allowedLogins has the logins that must have all rights
// for the command.
type commandLine struct {
	command       string
	args          []string
	role          string
	allowedLogins []string
}

// everyCommand returns a line for each command that uses the database, except `run`.
func (r *roles) everyCommand() []commandLine {
	folder := r.t.TempDir()
	ledger, file := filepath.Join(folder, "ledger.csv"), filepath.Join(folder, "debits.sql")
	for path, text := range map[string]string{
		ledger: "account_id,version,balance,currency\nb,1,1.00,EUR\n",
		file:   "-- projection: debits\n-- mode: once\n-- types: FundsDebited\nSELECT 1 FROM new_events;\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
	const (
		reason = "--reason=test"
		query  = "--outbox-query=SELECT account_id AS key, ''::text AS value FROM unnest($1::text[], $2::bigint[]) AS w (account_id, version)"
	)
	operator, anybody := []string{"bank_operator", "bank_approver"}, []string{"bank_operator", "bank_approver", "bank_reader"}
	return []commandLine{
		{"migrate", nil, "projector_migrator", []string{"bank_migrate"}},
		{"migrate status", nil, "projector_migrator", []string{"bank_migrate"}},
		{"gaps", nil, "projector_operator", operator},
		{"gaps fetch", []string{"--outbox-url=" + r.url, query, reason, "--yes"}, "projector_operator", operator},
		{"dlq list", nil, "projector_operator", operator},
		{"dlq summary", nil, "projector_operator", operator},
		{"dlq show", []string{"0/0"}, "projector_operator", operator},
		{"dlq export", nil, "projector_operator", operator},
		{"dlq replay", []string{"--yes"}, "projector_operator", operator},
		{"dlq discard", []string{reason, "--yes"}, "projector_operator", operator},
		{"account show", []string{"a"}, "projector_operator", operator},
		{"account skip", []string{"a", "--version=1", reason, "--yes"}, "projector_operator", operator},
		{"account unskip", []string{"a", "--version=1", reason, "--yes"}, "projector_operator", operator},
		{"account statement", []string{"a"}, "projector_reader or projector_operator", anybody},
		{"position", nil, "projector_operator", operator},
		{"position set", []string{"--all", "--start", "--new-group", reason, "--yes"}, "projector_operator", operator},
		{"position remove", []string{"--group=unused", reason, "--yes"}, "projector_migrator", []string{"bank_migrate"}},
		{"pause", []string{"--all", "--new-group", reason, "--yes"}, "projector_operator", operator},
		{"resume", []string{"--all", "--new-group", reason, "--yes"}, "projector_operator", operator},
		{"lag", nil, "projector_operator", operator},
		{"open", []string{"--ledger=" + ledger, reason, "--yes"}, "projector_operator", operator},
		{"verify", []string{"--ledger=" + ledger}, "projector_operator", operator},
		{"audit", nil, "projector_operator", operator},
		{"audit verify", nil, "projector_operator", operator},
		{"requests", nil, "projector_operator", operator},
		{"requests show", []string{"1"}, "projector_operator", operator},
		{"approve", []string{"1", reason}, "projector_approver", []string{"bank_approver"}},
		{"reject", []string{"1", reason}, "projector_approver", []string{"bank_approver"}},
		{"inbox prune", nil, "projector_operator", operator},
		{"rebuild", []string{"--yes"}, "projector_operator", operator},
		{"rebuild", []string{"--check"}, "projector_operator", operator},
		{"projection check", []string{file}, "projector_operator", operator},
	}
}

// TestAMissingRoleIsNamed runs the commands of everyCommand. It runs each command as a login of
// each role and as a login without a role. If PostgreSQL refuses, the error must name the role that
// the command needs.
func TestAMissingRoleIsNamed(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	r.exec(fmt.Sprintf("CREATE ROLE bank_nobody LOGIN PASSWORD '%s'", rolesPassword))
	r.exec(fmt.Sprintf("GRANT CONNECT ON DATABASE %s TO bank_nobody", r.db.Config().ConnConfig.Database))
	if status, stderr := r.runAs("bank_migrate", "migrate"); status != 0 {
		t.Fatal(stderr)
	}
	r.produce([]testbank.Record{{Value: []byte("not an event")}})
	for _, c := range r.everyCommand() {
		t.Run(c.command, func(t *testing.T) {
			t.Parallel()
			for _, user := range []string{"bank_migrate", "bank_app", "bank_operator", "bank_approver", "bank_reader", "bank_nobody"} {
				_, _, stderr := once(t, append(r.connection(user), "KAFKA_TOPIC="+r.topic), append(strings.Fields(c.command), c.args...)...)
				refused := strings.Contains(stderr, "42501")
				if refused && (slices.Contains(c.allowedLogins, user) || !strings.Contains(stderr, "a login in "+c.role) || !strings.Contains(stderr, "docs/security.md")) {
					t.Errorf("%s as %s: %s", c.command, user, stderr)
				}
				if user == "bank_nobody" && !refused {
					t.Errorf("%s as a login without a role: %s", c.command, stderr)
				}
			}
		})
	}
}

// TestEveryCommandIsTriedByEveryRole compares everyCommand with docs/cli.md. It fails if a command
// that uses the database is missing in everyCommand.
func TestEveryCommandIsTriedByEveryRole(t *testing.T) {
	reference, err := os.ReadFile("../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	tried := map[string]bool{
		"run": true, // run does not end by itself; TestARestoreReportsLostGrants covers it
	}
	for _, c := range (&roles{world: &world{t: t}}).everyCommand() {
		tried[c.command] = true
	}
	sections := strings.Split(string(reference), "\n## projector ")[1:]
	for _, section := range sections {
		name, _, _ := strings.Cut(section, "\n")
		_, shared, _ := strings.Cut(section, "\nShared flags: ")
		shared, _, _ = strings.Cut(shared, "\n")
		group, leaf, _ := strings.Cut(name, " ")
		sameAsGroup := tried[group] && (leaf == "list" || leaf == "up")
		if strings.Contains(shared, "(#postgresql-flags)") && !tried[name] && !sameAsGroup {
			t.Errorf("projector %s uses the database, and no role is tried with it", name)
		}
	}
	if len(sections) < 30 {
		t.Errorf("%d commands in docs/cli.md", len(sections))
	}
}
