package e2e_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ownTables creates the tables that the files in docs/examples need.
func (w *world) ownTables() {
	w.t.Helper()
	tables, err := os.ReadFile("../docs/examples/tables.sql")
	if err != nil {
		w.t.Fatal(err)
	}
	w.exec(string(tables))
}

// TestTheBreakerOfAProjectionFile uses a custom projection whose table refuses every row, so the
// partition stops. An operator corrects the table and resumes the partition.
func TestTheBreakerOfAProjectionFile(t *testing.T) {
	t.Parallel()
	const file, taken, refused = "--projection-file=../docs/examples/event-count.sql", 5, 16
	w := newWorld(t, 1)
	w.ownTables()
	w.exec("ALTER TABLE event_count ADD CONSTRAINT old CHECK (account_id NOT LIKE 'new%')")
	for i := range taken {
		w.append(credit(fmt.Sprint("old-", i), 1))
	}
	for i := range refused {
		w.append(credit(fmt.Sprint("new-", i), 1))
	}
	p := w.start(file, "--breaker-window=8")
	await(t, "the breaker", p.answers("/readyz", 503, "rejected_by_database"))
	states := w.positionStates(file)
	if len(states) != 1 || states[0].State != "breaker_open" || sum(w.positions()) >= taken+refused {
		t.Fatalf("%+v", states)
	}
	w.exec("ALTER TABLE event_count DROP CONSTRAINT old")
	w.statesAfter("resume", file, "--all", "--reason=mended", "--yes")
	await(t, "every record consumed", w.arrived)
	await(t, "ready", p.answers("/readyz", 200, ""))
	env := []string{"DATABASE_URL=" + w.url, "KAFKA_BROKERS=" + w.addrs[0]}
	if status, _, stderr := once(t, env, "dlq", "replay", file, "--topic="+w.topic, "--group="+w.group, "--yes", "--reason=mended"); status != 0 {
		t.Fatalf("dlq replay: exit %d: %s", status, stderr)
	}
	await(t, "each event counted once", func() string {
		var rows, events int
		if err := w.db.QueryRow(t.Context(), "SELECT count(*), sum(events) FROM event_count").Scan(&rows, &events); err != nil {
			return err.Error()
		}
		if rows != taken+refused || events != rows {
			return fmt.Sprintf("%d rows, %d events", rows, events)
		}
		return ""
	})
	p.terminate()
}

func earned(account string, version int, points string) *kgo.Record {
	return &kgo.Record{Key: []byte(account), Value: fmt.Appendf(nil,
		`{"eventId":"%[1]s-%[2]d","eventType":"PointsEarned","accountId":%[1]q,"version":%[2]d,"occurredAt":"2026-01-01T00:00:00Z","data":{"points":%[3]s}}`,
		account, version, points)}
}

// TestTwoPeopleRepairAProjectionFile checks that a repair needs two people although the tables
// belong to another owner. A missing grant must be reported before anything changes.
func TestTwoPeopleRepairAProjectionFile(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	r.mustAs("bank_migrate", "migrate")
	r.ownTables()
	r.exec("ALTER TABLE loyalty ADD CONSTRAINT few CHECK (points < 100); GRANT SELECT, INSERT ON loyalty TO projector_operator")
	r.refusedAs("bank_migrate", "may write loyalty", "migrate", "--four-eyes=on")
	r.exec("REVOKE ALL ON loyalty FROM projector_operator")
	r.mustAs("bank_migrate", "migrate", "--four-eyes=on")
	r.append(earned("a", 1, "5"), earned("b", 1, "1"), earned("b", 2, `"many"`), earned("b", 3, "2"),
		earned("c", 1, "3"), earned("c", 2, "1000"), earned("d", 1, `"some"`))
	source := []string{"--projection-file=../docs/examples/loyalty.sql", "--topic=" + r.topic, "--group=" + r.group}
	p := launch(t, []string{rolesPassword}, r.connection("bank_app"), r.flags(source[0])...)
	await(t, "every record consumed", r.arrived)
	p.terminate()
	holds := func(want string) {
		t.Helper()
		var got string
		if err := r.db.QueryRow(t.Context(), "SELECT string_agg(account_id || ' ' || points, ', ' ORDER BY account_id) FROM loyalty").Scan(&got); err != nil || got != want {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
	two := func(command string, flags ...string) {
		t.Helper()
		id := r.mustAs("bank_operator", append(strings.Fields(command), flags...)...)
		r.mustAs("bank_approver", "approve", id, "--reason=seen")
	}
	holds("a 5, b 1, c 3")
	two("account skip b --version=2 --reason=wrong --yes", source[0])
	r.exec("ALTER TABLE loyalty DROP CONSTRAINT few")
	two("dlq replay --account=c --yes", source...)
	two("dlq discard --account=d --reason=rubbish --yes", source...)
	holds("a 5, b 3, c 1003")

	r.exec("UPDATE loyalty SET points = 99 WHERE account_id = 'b'")
	rebuild := append([]string{"rebuild", "--yes"}, source...)
	r.refusedAs("bank_operator", "GRANT SELECT ON loyalty TO projector_migrator; GRANT SELECT ON loyalty TO projector_operator", rebuild...)
	r.exec("GRANT SELECT ON loyalty TO projector_operator, projector_migrator")
	r.refusedAs("bank_approver", "GRANT DELETE ON loyalty TO projector_approver", "approve", r.mustAs("bank_operator", rebuild...), "--reason=seen")
	holds("a 5, b 99, c 1003")
	r.exec("GRANT DELETE ON loyalty TO projector_projection")
	two("rebuild --yes", source...)
	holds("a 5, b 3, c 1003")
}
