package e2e_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// takeover is a projection file with an attack. Its SQL would change the password of the login that
// runs it.
const takeover = `-- projection: innocent
-- mode: ordered
-- types: FundsCredited
DO $$ BEGIN PERFORM set_config('role', 'none', true); EXECUTE format('ALTER ROLE %I PASSWORD %L', session_user, 'owned'); END $$;
`

// The method invented returns a line of an export for a dead letter that does not exist.
func (r *roles) invented(projection, amount string) string {
	r.t.Helper()
	value := fmt.Sprintf(`{"eventId":"forged-1","eventType":"FundsCredited","accountId":"forged","version":1,`+
		`"occurredAt":"2026-01-01T00:00:00Z","data":{"amount":%q,"currency":"EUR"}}`, amount)
	line, err := json.Marshal(map[string]any{
		"dlq_topic": r.topic + ".dlq", "dlq_partition": 0, "dlq_offset": 900004, "class": "malformed_payload", "message": "x",
		"expected_version": nil, "received_version": nil, "topic": r.topic, "partition": 0, "offset": 7, "timestamp": 0,
		"failed_at": "2026-01-01T00:00:00Z", "replays": 0, "group": r.group, "projection": projection,
		"key": "forged", "value": value, "headers": []any{}, "sha256": fmt.Sprintf("%x", sha256.Sum256([]byte(value))),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return string(line) + "\n"
}

// forgesRequests makes requests that an approver must not approve unknowingly. They contain SQL
// that gives the operator more rights, an amount that no producer sent, or the names of other files
// and servers.
func (r *roles) forgesRequests(operator *session) {
	r.t.Helper()
	folder := r.t.TempDir()
	write := func(name, text string) string {
		r.t.Helper()
		path := folder + "/" + name
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			r.t.Fatal(err)
		}
		return path
	}
	before, password := r.written()
	replay := []string{"dlq", "replay", "--topic=" + r.topic, "--reason=agreed", "--yes"}
	// The function insert inserts a copy of the first replay request that has other files and
	// options.
	insert := func(options string, flags, names []string, contents [][]byte) (id string) {
		r.t.Helper()
		if err := operator.conn.QueryRow(r.t.Context(), `INSERT INTO public.repair_request (action, arguments, file_flags, file_names, file_contents, plan_sha256, records, actor, reason)
			SELECT action, ARRAY[arguments[1], `+options+`], $1, $2, $3, plan_sha256, records, actor, reason
			FROM public.repair_request WHERE action = 'replay' ORDER BY id LIMIT 1 RETURNING id::text`, flags, names, contents).Scan(&id); err != nil {
			r.t.Fatal(err)
		}
		return id
	}
	sql, lines := write("evil.sql", takeover), r.invented("innocent", "1.00")
	file := "--from-file=" + write("invented.jsonl", r.invented("account_balance", "9999999.00"))
	honest := r.mustAs("bank_operator", append(replay, "--not-in-topic", "--actor=me", file)...)

	// Attack 15: use SQL of a projection that never ran. The request is made by the program or
	// inserted by hand.
	const unknown = "no projection was run from this text of evil.sql"
	r.refusedAs("bank_operator", unknown, append(replay, "--not-in-topic", "--from-file="+write("innocent.jsonl", lines), "--projection-file="+sql)...)
	id := insert(`replace(replace(arguments[2], '"ProjectionFile":""', '"ProjectionFile":"evil.sql"'), '"Projection":"account_balance"', '"Projection":""')`,
		[]string{"from-file", "projection-file"}, []string{"invented.jsonl", "evil.sql"}, [][]byte{[]byte(lines), []byte(takeover)})
	r.refusedAs("bank_approver", unknown, "requests", "show", id)
	if shown := r.mustAs("bank_approver", "requests", "show", id, "--file=evil.sql"); shown != strings.TrimSpace(takeover) {
		r.t.Errorf("the file is shown as %q", shown)
	}
	r.refusedAs("bank_approver", unknown, "approve", id, "--reason=harmless")
	// These requests name a file on the approver's machine or the operator's own servers.
	for _, options := range []string{
		`replace(arguments[2], '"FromFile":"invented.jsonl"', '"FromFile":"/etc/passwd"')`, `replace(arguments[2], '"Mapping":""', '"Mapping":"passwd"')`,
		`overlay(arguments[2] PLACING '{"Brokers":["evil:9092"],' FROM 1 FOR 1)`, `overlay(arguments[2] PLACING '{"DatabaseURL":"postgres://evil",' FROM 1 FOR 1)`,
	} {
		id := insert(options, []string{"from-file"}, []string{"invented.jsonl"}, [][]byte{[]byte(lines)})
		r.refusedAs("bank_approver", "was made by hand", "requests", "show", id)
		r.refusedAs("bank_approver", "was made by hand", "approve", id, "--reason=harmless")
	}

	// Attack 16: replay an amount that no producer sent. The request is refused, or shown as not in
	// the DLQ topic.
	r.refusedAs("bank_operator", "line 1: topic "+r.topic+".dlq has no dead letter at 0/900004", append(replay, file)...)
	id = honest
	for user, sees := range map[string]bool{"bank_operator": false, "bank_approver": true} {
		shown := r.mustAs(user, "requests", "show", id)
		if !strings.Contains(shown, "not in the DLQ topic") || !strings.Contains(shown, "invented.jsonl") || strings.Contains(shown, "9999999.00") != sees {
			r.t.Errorf("%s is shown\n%s", user, shown)
		}
	}
	forged := insert("arguments[2]", []string{"from-file"}, []string{"invented.jsonl"}, [][]byte{[]byte(r.invented("account_balance", "8888888.00"))})
	r.refusedAs("bank_approver", "the plan has changed since", "approve", forged, "--reason=as before")
	r.mustAs("bank_approver", "reject", id, "--reason=nobody has sent that")
	if after, now := r.written(); after != before || now != password {
		r.t.Errorf("something was changed: %s, was %s; passwords: %v", after, before, now == password)
	}

	// If the request is approved anyway, the audit trail marks the event as altered.
	id = r.mustAs("bank_operator", append(replay, "--not-in-topic", file)...)
	r.mustAs("bank_approver", "approve", id, "--reason=seen")
	if trail := r.mustAs("bank_approver", "audit", "--account=forged", "--output=json"); !strings.Contains(trail, `"altered":true`) ||
		!strings.Contains(trail, `"original_sha256":null`) || !strings.Contains(trail, "not in the DLQ topic") {
		r.t.Errorf("the trail says %s", trail)
	}
}

// The method written returns what a forged request could change: the balances and the passwords of
// logins.
func (r *roles) written() (balances, passwords string) {
	r.t.Helper()
	if err := r.db.QueryRow(r.t.Context(), `SELECT (SELECT md5(string_agg(b::text, ',' ORDER BY account_id)) FROM account_balance b),
		(SELECT string_agg(rolpassword, ',' ORDER BY rolname) FROM pg_authid WHERE rolname LIKE 'bank_%')`).Scan(&balances, &passwords); err != nil {
		r.t.Fatal(err)
	}
	return balances, passwords
}
