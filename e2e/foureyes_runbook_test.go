package e2e_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"projector/internal/testbank"
)

// typedCommand matches a command on a page: a line of a block, or text between backquotes.
var typedCommand = regexp.MustCompile("(?m)^(?:KAFKA_BROKERS=\\S+ )?projector .*$|`projector [^`]*`")

// The function changing returns the commands that change data. On docs/cli.md, which is made from the
// program, these are the commands with the common flags --reason and --actor.
func changing(t *testing.T) (all []string) {
	t.Helper()
	page, err := os.ReadFile("../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, section := range strings.Split(string(page), "\n## projector ")[1:] {
		if name, rest, _ := strings.Cut(section, "\n"); regexp.MustCompile("(?m)^Shared flags: .*`--reason`, `--actor`.*\\(\\[Common\\]").MatchString(rest) {
			all = append(all, name)
		}
	}
	if len(all) < 12 {
		t.Fatalf("only the commands %v change data", all)
	}
	return all
}

// others matches the commands that are not for operators, which are `run` and `migrate`. It also
// matches an empty text.
var others = regexp.MustCompile(`^($|run( |$)|migrate)`)

// runbook returns the commands of docs/runbook.md and docs/repairs.md, with the topic, group and
// accounts of this test. If a command occurs several times with the same flags, runbook returns
// only the first of these commands. The parameter letter is the place of a dead letter of the
// account, and offset that of its record. The parameter skipped is an account and a skipped version of it.
func (r *roles) runbook(folder, account string, version int64, letter, offset, skipped string) [][]string {
	r.t.Helper()
	var text strings.Builder
	for _, path := range []string{"../docs/runbook.md", "../docs/repairs.md"} {
		page, err := os.ReadFile(path)
		if err != nil {
			r.t.Fatal(err)
		}
		text.Write(page)
	}
	fit := strings.NewReplacer("unskip acc-42 --version 18", "unskip "+skipped, " ID", " "+account, "=ID", "="+account, "acc-42", account, "--version 18", fmt.Sprintf("--version %d", version),
		"--offset 1042", "--offset "+offset, "P/O", letter, "1/0", letter, "--partition=3", "--partition=1", " --watch", "", "account-events", r.topic, `"…"`, "x", `"`, "'",
		"verify … ", "verify --ledger "+folder+"/ledger.csv ", "--ledger-url …", "--ledger-url "+r.urlOf("bank_operator"), "--ledger-query …", `--ledger-query 'SELECT account_id, version, balance FROM account_balance'`,
		"postgres://auditor@ledger:5432/core", r.urlOf("bank_operator"), `FROM account"`, "FROM account_balance'", "ledger.csv", folder+"/ledger.csv")
	file, value := regexp.MustCompile(`[^ =]+\.jsonl`), regexp.MustCompile(`[ =][^- ].*`)
	seen := map[string]bool{}
	var all [][]string
	for _, line := range typedCommand.FindAllString(text.String(), -1) {
		line, _, _ = strings.Cut(strings.Trim(line, "`"), " #")
		line, _, _ = strings.Cut(line, " | ")
		_, line, _ = strings.Cut(strings.TrimSpace(fit.Replace(line)), "projector ")
		if others.MatchString(line) {
			continue
		}
		if !strings.HasPrefix(line, "position remove ") {
			line = elsewhere.ReplaceAllString(line, "")
		}
		switch line {
		case "verify":
			line += " --ledger " + folder + "/ledger.csv"
		case "dlq replay":
			line += " --account=" + account
		}
		if strings.Contains(line, "…") {
			r.t.Errorf("the runbook leaves something out: %s", line)
		}
		name := "letters"
		if strings.HasPrefix(line, "dlq export") {
			name = fmt.Sprint(len(all))
		}
		command, flags, _ := strings.Cut(line+" ", " --")
		for _, flag := range strings.Split(flags, " --") {
			if flag = value.ReplaceAllString(flag, ""); flag != "yes " {
				command += " " + flag
			}
		}
		if !seen[command] {
			seen[command] = true
			all = append(all, words(file.ReplaceAllString(line, folder+"/"+name+".jsonl")))
		}
	}
	if len(all) < 30 {
		r.t.Fatalf("only %d commands in the runbook", len(all))
	}
	return all
}

// elsewhere matches the flags that select another read model.
var elsewhere = regexp.MustCompile(` --(database-url|group)=\S+`)

// everythingMissing is an outbox query that returns an event for each missing version.
const everythingMissing = `SELECT a AS key, json_build_object('eventId', a || '-' || v, 'eventType', 'AccountClosed', 'accountId', a, 'version', v,
	'occurredAt', '2026-01-01T00:00:00Z')::text AS value FROM unnest($1::text[], $2::bigint[]) AS missing (a, v)`

// words splits a line as a shell does.
func words(line string) []string {
	var all []string
	for i, part := range strings.Split(line, "'") {
		switch {
		case i%2 == 1 && len(all) > 0 && strings.HasSuffix(all[len(all)-1], "="):
			all[len(all)-1] += part
		case i%2 == 1:
			all = append(all, part)
		default:
			all = append(all, strings.Fields(part)...)
		}
	}
	return all
}

// TestTheRunbookNeedsNoOtherRole runs the operators' commands of docs/runbook.md and
// docs/repairs.md as an operator. With four eyes on, a command that changes data becomes a request,
// and an approver approves one request of each type. With four eyes off, a command of each type
// runs at once.
func TestTheRunbookNeedsNoOtherRole(t *testing.T) {
	t.Parallel()
	r, account, version := twoPeople(t)
	folder := t.TempDir()
	if err := os.WriteFile(folder+"/ledger.csv", []byte("account_id,version,balance,currency\nopened,3,1,EUR\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.mustAs("bank_operator", "dlq", "export", "--topic="+r.topic, "--file="+folder+"/letters.jsonl")
	listed := r.mustAs("bank_operator", "dlq", "list", "--topic="+r.topic, "--account="+account, "--status=open,ready,waiting", "--output=json")
	place := regexp.MustCompile(`"dlq_partition":(\d+),"dlq_offset":(\d+).*"offset":(\d+)`).FindStringSubmatch(listed)
	if place == nil {
		t.Fatal("there is no dead letter")
	}
	r.exec(`INSERT INTO projector_position (consumer_group, topic, partition, next_offset, judged_until, topic_id, owner, fence, projection)
		SELECT 'account-balance-old', topic, partition, next_offset, judged_until, topic_id, '', fence, projection FROM projector_position`)
	commands := r.runbook(folder, account, version, place[1]+"/"+place[2], place[3], r.skippedVersion())
	suffices := func(user string, args ...string) {
		env := append(r.connection(user), "KAFKA_TOPIC="+r.topic, "IGNORE_EVENT_TYPES="+testbank.IgnoredType,
			"OUTBOX_URL="+r.urlOf("bank_operator"), "OUTBOX_QUERY="+everythingMissing)
		if !regexp.MustCompile("statement|turnover").MatchString(strings.Join(args, " ")) { // these projections have other consumer groups
			env = append(env, "KAFKA_GROUP="+r.group)
		}
		status, _, said := once(t, env, args...)
		if status == 2 || strings.Contains(said, "42501") || strings.Contains(said, "privilege") || strings.Contains(said, "permission denied") {
			t.Errorf("%s: %s: exit status %d: %s", user, strings.Join(args, " "), status, said)
		}
	}
	var wrong string // account with a wrong balance that only a rebuild corrects
	if err := r.db.QueryRow(t.Context(), `UPDATE account_balance SET balance = balance + 1 WHERE account_id =
		(SELECT min(account_id) FROM account_balance_current WHERE NOT stale) RETURNING account_id`).Scan(&wrong); err != nil {
		t.Fatal(err)
	}
	r.exec("INSERT INTO inbox (message_id, handler, processed_at) VALUES ('old', 'daily_turnover', now() - interval '1 year')")
	changes := map[string][][]string{}
	for _, name := range changing(t) {
		changes[name] = nil
	}
	for _, args := range commands {
		name := args[0]
		if _, found := changes[name]; !found && len(args) > 1 {
			name += " " + args[1]
		}
		_, changing := changes[name]
		switch {
		case slices.Contains(args, "--check"):
			suffices("bank_operator", args...)
		case changing:
			if args = slices.DeleteFunc(args, func(a string) bool { return a == "--yes" }); name != "inbox prune" {
				args = append(args, "--yes")
			}
			changes[name] = append(changes[name], args)
			suffices("bank_operator", args...)
		case args[0] == "approve", args[0] == "reject":
			args[1] = "999999" // an approved request could change the plans of the others
			suffices("bank_approver", args...)
		default:
			suffices("bank_operator", args...)
		}
	}
	suffices("bank_operator", "requests")
	r.stamped("requested_by <> 'bank_operator' OR decided_by = 'bank_operator'", 0)
	var ids, names []string
	err := r.db.QueryRow(t.Context(), `SELECT array_agg(id::text ORDER BY name <> 'rebuild', id), array_agg(name ORDER BY name <> 'rebuild', id)
		FROM (SELECT DISTINCT ON (arguments[1], file_flags) id, arguments[1] AS name FROM repair_request WHERE state = 'open' ORDER BY name, file_flags, id) AS one`).Scan(&ids, &names)
	if err != nil {
		t.Fatal(err)
	}
	for name := range changes {
		if !slices.Contains(names, name) {
			t.Errorf("%s has made no request: is it on the pages, and does its Hash count what it would change?", name)
		}
	}
	for i, id := range ids {
		suffices(mayDo("bank_approver", names[i]), "approve", id, "--reason=checked")
	}
	r.stamped("action = 'rebuild' AND state = 'approved' AND decided_by = 'bank_approver'", 1)
	if balance := r.rows()[wrong].Balance; balance != r.oracle().Rows()[wrong].Balance {
		t.Errorf("the rebuild that was approved left %s at %s", wrong, balance)
	}
	r.mustAs("bank_migrate", "migrate", "--four-eyes=off")
	for name, all := range changes {
		done := map[bool]bool{}
		for _, args := range all {
			if ofFile := slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--from-file") }); !done[ofFile] {
				done[ofFile] = true
				suffices(mayDo("bank_operator", name), args...)
			}
		}
	}
	suffices("bank_operator", "audit", "verify")
}

// mayDo returns the login that executes a command. Only the role that migrates may remove positions.
func mayDo(login, command string) string {
	if command == "position remove" {
		return "bank_migrate"
	}
	return login
}

// skippedVersion skips the next version of an account that does not wait. It returns the account and
// the version as arguments of a command.
func (r *roles) skippedVersion() (arguments string) {
	r.t.Helper()
	if err := r.db.QueryRow(r.t.Context(), `SELECT account_id || ' --version ' || version + 1 FROM account_balance_current
		WHERE NOT stale ORDER BY account_id DESC LIMIT 1`).Scan(&arguments); err != nil {
		r.t.Fatal(err)
	}
	id := r.mustAs("bank_operator", append([]string{"account", "skip", "--nothing-waits", "--reason=lost", "--yes"}, strings.Fields(arguments)...)...)
	r.mustAs("bank_approver", "approve", id, "--reason=checked")
	return arguments
}
