package inspect_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
	"projector/internal/devstack/devtest"
)

const cloud = `{"specversion":"1.0","id":"acc-9-1","source":"s","type":"FundsCredited","subject":"acc-9","sequence":"1",` +
	`"time":"2026-01-01T00:00:00Z","data":{"amount":"3.00","currency":"EUR"}}`

// cloudEvents produces n CloudEvents in structured mode.
func cloudEvents(s *clitest.Stage, n int) {
	s.T.Helper()
	for range n {
		r := &kgo.Record{Topic: s.Topic, Value: []byte(cloud), Headers: []kgo.RecordHeader{{Key: "content-type", Value: []byte("application/cloudevents+json")}}}
		if err := s.Client.ProduceSync(s.T.Context(), r).FirstErr(); err != nil {
			s.T.Fatal(err)
		}
	}
}

// mixed produces records with different outcomes to the only partition.
func mixed(s *clitest.Stage) {
	s.T.Helper()
	s.Produce(
		clitest.EventOf("acc-a", 1, `"10.25"`),
		strings.Replace(clitest.EventOf("acc-a", 2, `"1"`), "FundsCredited", "CardIssued", 1),
		strings.Replace(clitest.EventOf("acc-a", 3, `"1"`), `"EUR"`, `"XXX"`, 1),
		clitest.EventOf("acc-a", 4, `"7.777"`),
		clitest.EventOf("acc-a", 0, `"2"`),
		"secret",
	)
	cloudEvents(s, 1)
	if err := s.Client.ProduceSync(s.T.Context(), &kgo.Record{Topic: s.Topic, Key: []byte("k")}).FirstErr(); err != nil {
		s.T.Fatal(err)
	}
}

func TestInspectSaysWhatEachRecordIs(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	mixed(s)
	const fields = "partition offset account_id version event_id event_type class"
	clitest.Equal(t, clitest.Pick(s.Lines("inspect"), strings.Fields(fields)...), strings.Join([]string{
		"0 0 acc-a 1 acc-a-1 FundsCredited null",
		"0 1 acc-a 2 acc-a-2 CardIssued unknown_event_type",
		"0 2 acc-a 3 acc-a-3 FundsCredited unsupported_currency",
		"0 3 acc-a 4 acc-a-4 FundsCredited invalid_amount",
		"0 4 acc-a null acc-a-0 FundsCredited malformed_payload",
		"0 5 null null null null malformed_payload",
		"0 6 null null null null malformed_payload",
		"0 7 null null null null null",
	}, ", "))
	first, _, _ := strings.Cut(s.Must("inspect", "--output=json"), "\n")
	clitest.Equal(t, clitest.Keys(t, first), "topic partition offset account_id version event_id event_type class message")
	clitest.Equal(t, clitest.Pick(s.Lines("inspect", "--ignore-event-types=CardIssued", "--currencies=JPY", "--first-version=0", "--limit=5"), "class"),
		"unsupported_currency, null, unsupported_currency, unsupported_currency, unsupported_currency")
	clitest.Equal(t, clitest.Pick(s.Lines("inspect", "--format=cloudevents", "--offset=6", "--limit=1"), "account_id", "version", "class"), "acc-9 1 null")
	names := filepath.Join(t.TempDir(), "names.yaml")
	if err := os.WriteFile(names, []byte("eventTypes:\n  CardIssued: FundsDebited\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	clitest.Equal(t, clitest.Pick(s.Lines("inspect", "--mapping="+names, "--offset=1", "--limit=1"), "event_type", "class"), "FundsDebited null")

	text := s.Must("inspect")
	clitest.Contains(t, text, "1 event", "tombstone", "3 malformed_payload", "data.amount", "(first at 0/3)", "0/7")
	for line := range strings.Lines(text) {
		if place, _, isRow := strings.Cut(line, "/"); isRow && len(place) == 1 && len(line) > 81 {
			t.Errorf("line of %d characters: %s", len(line), line)
		}
	}
	for _, secret := range []string{"10.25", "7.777", "secret", `"`} {
		if strings.Contains(text, secret) {
			t.Errorf("%s is shown\n%s", secret, text)
		}
	}
	clitest.Contains(t, s.Must("inspect", "--show-payload"), "10.25 EUR", "secret", `"amount":"7.777"`, "record 0/5")
	clitest.Equal(t, clitest.Pick(s.Lines("inspect", "--show-payload", "--offset=5", "--limit=1"), "value", "key"), "secret k")
}

const movements = `
eventTypes: {movement: {positive: FundsCredited, negative: FundsDebited}}
fields:
  eventId: meta.id
  eventType: meta.type
  accountId: {key: true}
  version: meta.seq
  occurredAt: {path: meta.ts, unit: ms}
  data: payload
  amount: {path: cents, unit: minor}
  currency: {constant: EUR}
`

// TestInspectExplainsAMapping shows that each field is printed with the path that it was read from,
// and each record with all its faults.
func TestInspectExplainsAMapping(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	for _, value := range []string{
		`{"meta":{"id":"m-1","type":"movement","seq":1,"ts":1767225600123},"payload":{"cents":-105077}}`,
		`{"meta":{"id":"","type":"movement","seq":1.5,"ts":"2026-01-01"},"payload":{"cents":10.5}}`,
	} {
		if err := s.Client.ProduceSync(t.Context(), &kgo.Record{Topic: s.Topic, Key: []byte("K9"), Value: []byte(value)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "bank.yaml")
	if err := os.WriteFile(path, []byte(movements), 0o600); err != nil {
		t.Fatal(err)
	}
	text := s.Must("inspect", "--mapping="+path)
	clitest.Contains(t, text, "FundsDebited  (meta.type)", "K9  (key)", "2026-01-01T00:00:00.123Z  (meta.ts)", "masked (--show-payload)  (payload.cents)", "EUR  (the constant)",
		"malformed_payload: meta.id: is empty", "malformed_payload: meta.seq: is not an integer", "malformed_payload: meta.ts", "invalid_amount: payload.cents")
	for _, secret := range []string{"105077", "1050.77", "10.5"} {
		if strings.Contains(text, secret) {
			t.Errorf("%s is shown\n%s", secret, text)
		}
	}
	clitest.Contains(t, s.Must("inspect", "--mapping="+path, "--show-payload"), "1050.77 EUR  (payload.cents)")
	lines := s.Lines("inspect", "--mapping="+path, "--show-payload", "--limit=1")
	clitest.Contains(t, fmt.Sprint(lines), "payload.cents", "1050.77")
	if strings.Contains(s.Must("inspect", "--mapping="+path, "--output=json"), "1050.77") {
		t.Error("JSON shows an amount")
	}
	if strings.Contains(text, "10 years") {
		t.Error(text)
	}
	s.Append(&kgo.Record{Key: []byte("K9"), Value: []byte(`{"meta":{"id":"m-2","type":"movement","seq":2,"ts":1767225600},"payload":{"cents":1}}`)})
	clitest.Contains(t, s.Must("inspect", "--mapping="+path), "1970-01-21T10:53:45.6Z  (meta.ts)", "1 events happened more than 10 years before or after")
	clitest.Contains(t, s.Must("inspect"), "are JSON objects", "inspect --suggest")
	suggested := s.Must("inspect", "--suggest")
	clitest.Contains(t, suggested, "eventId: meta.id", "DECIDE amount", "accountId: {key: true}", "movement:")
	decided := strings.NewReplacer(": DECIDE", ": FundsCredited", "{constant: DECIDE}", "{constant: EUR}").Replace(suggested)
	if err := os.WriteFile(path, []byte(decided), 0o600); err != nil {
		t.Fatal(err)
	}
	if text := s.Must("inspect", "--mapping="+path); strings.Contains(text, "line ") {
		t.Error(text)
	}
	clitest.Contains(t, s.Must("inspect", "--suggest", "--output=json"), `"mapping":"# Proposed`, `"decide":["`)
}

// TestInspectLeavesNothing shows that the command creates no consumer group and no topic.
func TestInspectLeavesNothing(t *testing.T) {
	t.Parallel()
	s := clitest.NewLeaderStage(t)
	s.Events(1)
	s.Must("inspect")
	adm := kadm.NewClient(s.Client)
	groups, err := adm.ListGroups(t.Context())
	if err != nil || len(groups) > 0 {
		t.Errorf("groups %v, error %v", groups.Groups(), err)
	}
	topics, err := adm.ListTopics(t.Context())
	if err != nil || len(topics) != 1 {
		t.Errorf("topics %v, error %v", topics.Names(), err)
	}
}

// With a wrong format, the command names the format that can read the records.
func TestInspectNamesTheFormatThatReads(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	cloudEvents(s, 2)
	clitest.Contains(t, s.Must("inspect"), "2 malformed_payload", "--format=cloudevents reads 2 of these 2")
	if text := s.Must("inspect", "--format=cloudevents"); strings.Contains(text, "reads") {
		t.Errorf("nothing is wrong, and yet:\n%s", text)
	}
	clitest.Equal(t, clitest.Pick(s.Lines("inspect", "--format=avro", "--schema-registry-url=http://127.0.0.1:1"), "class"),
		"malformed_payload, malformed_payload") // a value without a schema id needs no registry
	clitest.Contains(t, s.Must("inspect", "--format=avro", "--schema-registry-url=http://127.0.0.1:1"), "--format=cloudevents reads 2 of these 2")

	s.Produce("\x00\x00\x00\x00\x07avro")
	clitest.Contains(t, s.Must("inspect", "--offset=2"), "1 begin with a zero byte", "--format=avro", "--schema-registry-url")
	s.Produce("\x00\x00\x00\x00\x07{}") // with a JSON Schema
	if text := s.Must("inspect", "--offset=3"); strings.Contains(text, "--format=avro") {
		t.Errorf("it is JSON, and yet:\n%s", text)
	}
	said := s.Refused(exit.Failed, "inspect", "--offset=2", "--format=avro", "--schema-registry-url=http://127.0.0.1:1")
	clitest.Contains(t, said, "schema registry", "--schema-registry-url (SCHEMA_REGISTRY_URL)")
}

func TestInspectReadsOfAllPartitions(t *testing.T) {
	t.Parallel()
	s := clitest.NewLeaderStage(t)
	for version := range 9 {
		s.Events(version + 1)
	}
	clitest.Equal(t, clitest.Pick(s.Lines("inspect"), "partition", "offset"), "0 0, 0 1, 0 2, 0 3, 1 0, 1 1, 1 2, 2 0, 2 1, 2 2")
	clitest.Equal(t, clitest.Pick(s.Lines("inspect", "--limit=2"), "partition", "offset"), "0 0, 1 0")
	if n := len(s.Lines("inspect", "--limit=1000")); n != 27 {
		t.Errorf("%d records, want all 27", n)
	}
	clitest.Equal(t, clitest.Pick(s.Lines("inspect", "--partition=1", "--offset=7"), "partition", "offset"), "1 7, 1 8")
	clitest.Contains(t, s.Refused(exit.Usage, "inspect", "--offset=1"), "--partition")

	s.LoseLeader(s.Topic)
	lines, said := s.Some("inspect")
	clitest.Equal(t, clitest.Pick(lines, "partition", "offset"), "0 0, 0 1, 0 2, 0 3, 0 4, 2 0, 2 1, 2 2, 2 3, 2 4")
	clitest.Contains(t, said, "partition 1 of topic "+s.Topic, "LEADER_NOT_AVAILABLE", "bring back")
}

// TestInspectFillsUpBehindMarkers shows that inspect prints as many records as requested, even if
// some offsets are transaction markers or aborted records.
func TestInspectFillsUpBehindMarkers(t *testing.T) {
	t.Parallel()
	s := clitest.NewLeaderStage(t)
	producer := devtest.Client(t, s.Addrs, kgo.TransactionalID(s.Topic), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for i, end := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit, kgo.TryAbort} {
		if err := producer.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		for n := range 4 {
			r := &kgo.Record{Topic: s.Topic, Partition: int32(i), Value: []byte(clitest.EventOf(fmt.Sprint("acc-", i), n+1, `"1"`))}
			if err := producer.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		if err := producer.EndTransaction(t.Context(), end); err != nil {
			t.Fatal(err)
		}
	}
	clitest.Equal(t, clitest.Pick(s.Lines("inspect", "--limit=4"), "partition", "offset"), "1 0, 1 1, 1 2, 1 3")
	_, out, said := s.Command("inspect", "--partition=0")
	clitest.Equal(t, out, "")
	clitest.Contains(t, said, "no record can be read", "aborted transactions")
}

func TestInspectSaysWhyThereIsNothing(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	_, out, said := s.Command("inspect")
	clitest.Equal(t, out, "")
	clitest.Contains(t, said, "is empty", "no record was ever committed")
	clitest.Equal(t, s.Must("inspect", "--output=json"), "")

	s.Produce(clitest.EventOf("a", 1, `"1"`), clitest.EventOf("a", 2, `"1"`))
	_, _, said = s.Command("inspect", "--offset=2")
	clitest.Contains(t, said, "ends at offset 2", "--offset")
	clitest.Contains(t, s.Refused(exit.Failed, "inspect", "--offset=3"), "--offset: 3 is beyond the end", "from 0 to 2")
	clitest.Contains(t, s.Refused(exit.Failed, "inspect", "--partition=7"), "--partition: topic "+s.Topic+" has no partition 7")
	s.DeleteRecords(1)
	clitest.Contains(t, s.Refused(exit.Failed, "inspect", "--offset=0"), "--offset: 0 is no more", "from 1 to 2")
	clitest.Equal(t, clitest.Pick(s.Lines("inspect"), "offset"), "1")
	s.DeleteRecords(2)
	_, _, said = s.Command("inspect")
	clitest.Contains(t, said, "retention has removed all records before offset 2")

	for _, wrong := range []string{"--limit=0", "--partition=-1", "--offset=-1", "--format=avro", "--format=xml"} {
		name, _, _ := strings.Cut(wrong, "=")
		if wrong == "--format=avro" {
			name = "--schema-registry-url"
		}
		clitest.Contains(t, s.Refused(exit.Usage, "inspect", wrong), name)
	}
}

func TestInspectNamesWhatCannotBeReached(t *testing.T) {
	t.Parallel()
	s := clitest.NewLeaderStage(t)
	run := func(args ...string) string {
		var stdout, stderr bytes.Buffer
		began := time.Now()
		status := clitest.Execute(t.Context(), append([]string{"inspect", "--log-level=error"}, args...), &stdout, &stderr)
		if took := time.Since(began); status != exit.Failed || took > time.Minute {
			t.Errorf("%v: status %d after %v\n%s", args, status, took, stderr.String())
		}
		return stderr.String()
	}
	brokers := "--brokers=" + strings.Join(s.Addrs, ",")
	clitest.Contains(t, run(brokers, "--topic=nowhere"), `--topic (KAFKA_TOPIC): topic "nowhere" does not exist`)
	clitest.Contains(t, run("--brokers=127.0.0.1:1"), "reach Kafka", "--brokers (KAFKA_BROKERS)")
	s.Fake.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: s.Topic, Err: kerr.TopicAuthorizationFailed, Count: -1})
	s.Events(1)
	clitest.Contains(t, run(brokers, "--topic="+s.Topic), "missing ACL: READ on topic "+s.Topic)
}
