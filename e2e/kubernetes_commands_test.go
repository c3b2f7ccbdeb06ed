//go:build kubernetes

package e2e_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"projector/internal/testbank"
)

// inClusterDefinition returns the shell function of docs/deploy.md that runs a command as a Job.
func (k *kubernetesBank) inClusterDefinition() string {
	definition, _, found := strings.Cut(documented(k.t, "in_cluster()"), "export ACTOR=ann")
	if !found {
		k.t.Fatal("docs/deploy.md does not set ACTOR after the function")
	}
	return definition + "export ACTOR=ann\n"
}

// tryInCluster runs a command as a Job in a namespace. call is the line that calls the shell
// function of docs/deploy.md.
func (k *kubernetesBank) tryInCluster(n *namespace, call, job string, command ...string) (log string, err error) {
	k.t.Helper()
	for i, word := range command {
		command[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return n.shell(k.t.TempDir(), k.inClusterDefinition()+call+" "+job+" "+strings.Join(command, " "))
}

func (k *kubernetesBank) inCluster(job string, command ...string) string {
	k.t.Helper()
	log, err := k.tryInCluster(k.ns, "in_cluster", job, command...)
	if err != nil {
		k.t.Fatalf("%v: %v\n%s", command, err, log)
	}
	return strings.TrimSpace(log)
}

// commands runs the example commands of docs/deploy.md, and other operators' commands.
func (k *kubernetesBank) commands() {
	var account string
	var version int64
	if err := k.db.QueryRow(k.t.Context(), `SELECT account_id, expected_version FROM account_hold AS h
		WHERE NOT EXISTS (SELECT FROM parked_event AS p WHERE p.account_id = h.account_id AND p.version = h.expected_version + 1)
		ORDER BY account_id LIMIT 1`).Scan(&account, &version); err != nil { // an account without waiting events, because its skip can be reversed
		k.t.Fatal(err)
	}
	// A replay for an account that still waits for another version fails. The Job must fail at
	// once, and its log must be printed.
	log, err := k.ns.shell(k.t.TempDir(), strings.ReplaceAll(documented(k.t, "in_cluster()"), "acc-42", account))
	if err == nil || !strings.Contains(log, "could not be applied") {
		k.t.Errorf("the lines of docs/deploy.md, for an account that waits: %v\n%s", err, log)
	}
	if state := k.ns.kubectl("get", "job/replay-1", "-o", "jsonpath={.status.conditions[*].type}"); !strings.Contains(state, "Failed") {
		k.t.Errorf("a replay that leaves something waiting ends as %s", state)
	}
	reason := "--reason=INC-1234, a test"
	for i, command := range [][]string{
		{"where-1", "position"},
		{"lag"},
		{"gaps"},
		{"dlq", "summary"},
		{"dlq", "list", "--status=open,waiting"},
		{"dlq", "replay", "--class=malformed_payload"},
		{"account", "show", account},
		{"account", "statement", account},
		{"account", "skip", account, "--version=" + strconv.FormatInt(version, 10), reason},
		{"inspect"},
		{"rebuild", "--check"},
		{"rebuild"},
		{"migrate", "status"},
		{"position", "set", "--all", "--start", reason},
		{"verify", "--ledger-url=" + k.database("bank_operator", k.db.Config().ConnConfig.Database), "--ledger-password-file=/etc/projector/database/password", "--ledger-query=SELECT account_id, coalesce(version, 1) AS version, coalesce(balance, 0) AS balance FROM account_balance_current"},
		{"account", "skip", account, "--version=" + strconv.FormatInt(version, 10), reason, "--yes"},
		{"audit", "--action=skip"},
		{"account", "unskip", account, "--version=" + strconv.FormatInt(version, 10), reason, "--yes"},
		{"audit", "verify"},
		{"requests"},
	} {
		job := "typed-" + strconv.Itoa(i)
		if command[0] == "where-1" {
			job, command = command[0], command[1:]
		}
		out := k.inCluster(job, command...)
		if command[0] == "audit" && command[1] == "--action=skip" && !strings.Contains(out, "ann") {
			k.t.Errorf("the trail does not name ann:\n%s", out)
		}
	}
}

// The method stopped pauses all partitions with the pause command and resumes them later. A person
// who sets --replicas=0 would not stop them, because KEDA would start the pods again.
func (k *kubernetesBank) stopped(records []testbank.Record) {
	k.inCluster("pause-1", "pause", "--all", "--reason=test", "--yes")
	await(k.t, "all partitions are paused", k.gauges(`projector_paused\{.*\} 1\n`, int(k.partitions)))
	before := k.positions()
	k.produce(records)
	await(k.t, "the lag is there", k.gauges(`projector_lag_records\{.*\} [1-9].*\n`, int(k.partitions)))
	if !maps.Equal(before, k.positions()) {
		k.t.Error("a position moved while everything was paused")
	}
	k.inCluster("resume-1", "resume", "--all", "--reason=test", "--yes")
	k.right(repeated)
}

// lostEvent adds the lines of docs/deploy.md about the producer's outbox to the overlay. The
// program must then fetch an event that is not in the topic from the outbox.
func (k *kubernetesBank) lostEvent() {
	database := k.db.Config().ConnConfig.Database
	k.exec("CREATE ROLE outbox_reader LOGIN PASSWORD '" + rolesPassword + "'")
	k.exec("GRANT CONNECT ON DATABASE " + pgx.Identifier{database}.Sanitize() + " TO outbox_reader")
	k.exec("CREATE TABLE outbox (account_id text, version bigint, payload text, PRIMARY KEY (account_id, version)); GRANT SELECT ON outbox TO outbox_reader")
	k.exec("INSERT INTO outbox VALUES ('lost', 2, $1)", string(credit("lost", 2).Value))
	k.ns.kubectl("patch", "secret", "projector-database", "--type=merge", "-p", `{"stringData": {"outbox-password": "`+rolesPassword+`"}}`)
	literals := []string{"OUTBOX_AFTER=1s"}
	for line := range strings.Lines(documented(k.t, "OUTBOX_QUERY")) {
		literal := strings.TrimPrefix(strings.TrimSpace(line), "- ")
		if strings.HasPrefix(literal, "OUTBOX_URL=") {
			literal = "OUTBOX_URL=" + k.database("outbox_reader", database)
		}
		literals = append(literals, literal)
	}
	k.deploy(k.documentedOverlay("v2", literals...))
	k.ns.rolledOut(balance)
	k.append(append(credits("lost", 1, 1), credits("lost", 3, 4)...)...)
	await(k.t, "the lost event is fetched", k.reads("lost", "4 0.04 false"))
}

// gauges returns a check for await. It succeeds when the metrics of account_balance have the given
// number of lines that match the pattern.
func (k *kubernetesBank) gauges(pattern string, want int) func() string {
	return func() string {
		found := 0
		for _, pod := range k.pods() {
			metrics := k.ns.kubectl("get", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:8080/proxy/metrics", k.ns.name, strings.TrimPrefix(pod, "pod/")))
			found += len(regexp.MustCompile(pattern).FindAllString(metrics, -1))
		}
		if found != want {
			return fmt.Sprintf("%d lines of %s, want %d", found, pattern, want)
		}
		return ""
	}
}

// twoPeople turns four eyes on. An operator's command then becomes a request. An approver approves
// the request in another namespace, which has the approver's Secret.
func (k *kubernetesBank) twoPeople() {
	approvers := newNamespace(k.t, "bank-approvers")
	k.objects(approvers, string(must(os.ReadFile(k.files.path("ca.crt")))(k.t)), "approver")
	approvers.secret("projector-kafka", "username", scramUser, "password", k.password)
	approvers.kubectl("apply", "-k", approvers.kustomization(k.addressed("overlays/approvers", "v2")))
	k.mustAs("bank_migrate", "migrate", "--four-eyes=on")
	lines := strings.Split(k.inCluster("pause-2", "pause", "--all", "--reason=test", "--yes"), "\n")
	request := lines[len(lines)-1] // the log also has a text for people before the request
	if !regexp.MustCompile(`^\d+$`).MatchString(request) {
		k.t.Fatalf("a request has the number %s", request)
	}
	if log, err := k.tryInCluster(k.ns, "in_cluster", "approve-own", "approve", request, "--reason=mine"); err == nil {
		k.t.Errorf("an operator has approved:\n%s", log)
	}
	if log, err := k.tryInCluster(approvers, "in_cluster", "approve-7", "approve", request, "--reason=seen"); err != nil {
		k.t.Fatalf("approve: %v\n%s", err, log)
	}
	await(k.t, "all partitions are paused", k.gauges(`projector_paused\{.*\} 1\n`, int(k.partitions)))
}
