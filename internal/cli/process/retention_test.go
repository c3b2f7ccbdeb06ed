package process_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/cli/clitest"
)

// TestRetentionMargins: how far retention is from what was not read is on the status page
// and among the metrics as `position` has it from outside, and goes when nothing is unread.
func TestRetentionMargins(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	adm := kadm.NewClient(s.Client)
	keep := func(topic, ms string) {
		t.Helper()
		answers, err := adm.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &ms}}, topic)
		if err == nil {
			_, err = answers.On(topic, func(r *kadm.AlterConfigsResponse) error { return r.Err })
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	keep(s.Topic, "7200000")
	if _, err := adm.CreateTopic(t.Context(), 1, -1, map[string]*string{"retention.ms": new("86400000")}, s.Topic+".dlq"); err != nil {
		t.Fatal(err)
	}
	s.Produce(clitest.EventOf("a", 1, `"1"`), clitest.EventOf("a", 2, `"1"`))
	s.Consuming(nil)
	s.DeleteRecords(1)

	held, err := s.Pool.Begin(t.Context()) // what comes now is not written
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Rollback(t.Context()) }()
	if _, err := held.Exec(t.Context(), "LOCK TABLE account_balance IN EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	old := &kgo.Record{Topic: s.Topic, Timestamp: time.Now().Add(-90 * time.Minute), Value: []byte(clitest.EventOf("a", 3, `"1"`))}
	if err := s.Client.ProduceSync(t.Context(), old).FirstErr(); err != nil {
		t.Fatal(err)
	}
	address := running(s)
	var got statusJSON
	askUntil(s, address+"/status.json", &got, func() bool {
		return len(got.Partitions) == 1 && got.Partitions[0].MarginSeconds != nil
	})
	p, outside := got.Partitions[0], s.Lines("position")[0]
	if left, seen := *p.MarginSeconds, outside["margin_seconds"].(float64); left > 1800 || left < 1700 || seen > left || *got.MarginSeconds != left {
		t.Errorf("retention takes the record in %v s, by `position` in %v s; of all %v s", left, seen, *got.MarginSeconds)
	}
	clitest.Equal(t, fmt.Sprint(*p.MarginRecords), fmt.Sprint(outside["margin_records"]))
	page, metrics := fetch(t, address+"/"), fetch(t, address+"/metrics")
	clitest.Contains(t, page, "Retention takes unread records in", "lasts 29 min")
	partition := `{partition="0",projection="account_balance",topic="` + s.Topic + `"} `
	clitest.Contains(t, metrics, "projector_retention_margin_records"+partition+"1\n", "projector_retention_margin_seconds"+partition+"17",
		`projector_dlq_retention_seconds{projection="account_balance"} 86400`)

	if err := held.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	keep(s.Topic+".dlq", "-1")
	askUntil(s, address+"/status.json", &got, func() bool {
		return got.Partitions[0].Position == 3 && got.Partitions[0].MarginSeconds == nil && *got.Partitions[0].MarginRecords == 2
	})
	if metrics := fetch(t, address+"/metrics"); strings.Contains(metrics, "\nprojector_retention_margin_seconds") || strings.Contains(metrics, "\nprojector_dlq_retention_seconds") {
		t.Error("of what has no limit, or of nothing unread, there is a sample")
	}
}
