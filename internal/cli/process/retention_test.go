package process_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"projector/internal/cli/clitest"
	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
)

// TestRetentionMargins shows that the status page and the metrics have the same margin as
// `position`. The margin is how far retention is from the first unread record. After all records
// are read, there is no margin in seconds.
func TestRetentionMargins(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	adm := kadm.NewClient(s.Client)
	setRetention := func(topic, ms string) {
		t.Helper()
		answers, err := adm.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &ms}}, topic)
		if err == nil {
			_, err = answers.On(topic, func(r *kadm.AlterConfigsResponse) error { return r.Err })
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	setRetention(s.Topic, "7200000")
	if _, err := adm.CreateTopic(t.Context(), 1, -1, map[string]*string{"retention.ms": new("86400000")}, s.Topic+".dlq"); err != nil {
		t.Fatal(err)
	}
	s.Produce(clitest.EventOf("a", 1, `"1"`), clitest.EventOf("a", 2, `"1"`))
	s.Consuming(nil)
	s.DeleteRecords(1)

	held, err := s.Pool.Begin(t.Context()) // new records are not written while this transaction holds the lock
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
	setRetention(s.Topic+".dlq", "-1")
	askUntil(s, address+"/status.json", &got, func() bool {
		return got.Partitions[0].Position == 3 && got.Partitions[0].MarginSeconds == nil && *got.Partitions[0].MarginRecords == 2
	})
	if metrics := fetch(t, address+"/metrics"); strings.Contains(metrics, "\nprojector_retention_margin_seconds") || strings.Contains(metrics, "\nprojector_dlq_retention_seconds") {
		t.Error("of what has no limit, or of nothing unread, there is a sample")
	}
}

// TestNoTimeIsLeftForRemovedRecords shows that the margin in seconds is 0 when retention has
// removed unread records. This is also so for a paused partition: then the instance is ready, and
// only the margins show the loss.
func TestNoTimeIsLeftForRemovedRecords(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("a", 1, `"1"`))
	s.Consuming(nil)
	s.Must("pause", "--all", "--reason=x", "--yes")
	s.Produce(clitest.EventOf("a", 2, `"1"`), clitest.EventOf("a", 3, `"1"`))
	s.DeleteRecords(2)
	address := running(s)
	var got statusJSON
	askUntil(s, address+"/status.json", &got, func() bool {
		return len(got.Partitions) == 1 && got.Partitions[0].MarginSeconds != nil
	})
	if p := got.Partitions[0]; *p.MarginSeconds != 0 || *p.MarginRecords != -1 {
		t.Errorf("margin %v s, %d records", *p.MarginSeconds, *p.MarginRecords)
	}
	clitest.Equal(t, clitest.Pick(s.Lines("position"), "margin_records", "margin_seconds", "state"), "-1 0 paused")
	clitest.Contains(t, fetch(t, address+"/metrics"), `projector_retention_margin_seconds{partition="0",projection="account_balance",topic="`+s.Topic+`"} 0`)
	clitest.Contains(t, fetch(t, address+"/"), "retention is about to remove unread records")
}

// TestCompactedTopicsAreReported shows that an instance warns about a compacted topic, in which Kafka
// removes dead letters or events, until the topic is no longer compacted.
func TestCompactedTopicsAreReported(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	adm, dlq := kadm.NewClient(s.Client), s.Topic+".dlq"
	if _, err := adm.CreateTopic(t.Context(), 1, -1, map[string]*string{"cleanup.policy": new("compact,delete")}, dlq); err != nil {
		t.Fatal(err)
	}
	s.Produce(clitest.EventOf("a", 1, `"1"`))
	var log lines
	address := runningWith(s, slog.NewTextHandler(&log, nil))
	var got statusJSON
	askUntil(s, address+"/status.json", &got, func() bool { return got.Ready && len(got.Warnings) == 1 })
	clitest.Equal(t, got.Warnings[0].Condition, "topic "+dlq)
	clitest.Contains(t, got.Warnings[0].Reason, "compacted", "removes the dead letters of an account", "cleanup.policy=delete")
	set := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "cleanup.policy", Value: new("delete")}}
	if _, err := adm.AlterTopicConfigs(t.Context(), set, dlq); err != nil {
		t.Fatal(err)
	}
	askUntil(s, address+"/status.json", &got, func() bool { return len(got.Warnings) == 0 })
	if n := len(log.linesWith("a topic is compacted")); n != 1 {
		t.Errorf("%d lines of the log", n)
	}
}

// TestRetentionIsUnknown shows that the retention of a topic is unknown without the permission
// DESCRIBE_CONFIGS. Then the margin in seconds has no value, but nothing fails. For a DLQ topic
// that does not exist yet, no permission is reported as missing.
func TestRetentionIsUnknown(t *testing.T) {
	t.Parallel()
	fake := devtest.Fake(t, devstack.FakeOptions{})
	s := clitest.StageOn(t, fake.Addrs())
	var mayCreate atomic.Bool
	denyDescribeConfigs(fake, s.Topic)
	denyCreateTopics(fake, &mayCreate)
	s.Produce(clitest.EventOf("a", 1, `"1"`))
	held, err := s.Pool.Begin(t.Context()) // new records are not written while this transaction holds the lock
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Rollback(t.Context()) }()
	if _, err := held.Exec(t.Context(), "LOCK TABLE account_balance IN EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	var log lines
	address := runningWith(s, slog.NewTextHandler(&log, nil))
	var got statusJSON
	askUntil(s, address+"/status.json", &got, func() bool {
		return len(got.Partitions) == 1 && got.Partitions[0].MarginRecords != nil && log.linesWith("how long a topic keeps") != nil
	})
	for _, reported := range log.linesWith("how long a topic keeps") { // a slow machine can get a second line after 10 s
		if !strings.Contains(reported, "topic="+s.Topic+" ") {
			t.Errorf("the log has %q", reported)
		}
	}
	mayCreate.Store(true)
	askUntil(s, address+"/status.json", &got, func() bool { return got.Ready })
	if lag := got.Partitions[0].Lag; lag == nil || *lag != 1 || got.Partitions[0].MarginSeconds != nil || got.MarginSeconds != nil {
		t.Errorf("%+v", got.Partitions[0])
	}
	metrics := fetch(t, address+"/metrics")
	clitest.Contains(t, metrics, "\nprojector_retention_margin_records{")
	if strings.Contains(metrics, "\nprojector_retention_margin_seconds") {
		t.Error("there is a sample of what is not known")
	}
	status, outside, said := s.Command("position", "--output=json")
	clitest.Equal(t, fmt.Sprint(status), "0")
	clitest.Contains(t, said, "missing ACL: DESCRIBE_CONFIGS on topic "+s.Topic)
	clitest.Contains(t, outside, `"lag_records":1`, `"margin_seconds":null`)
	if err := held.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	askUntil(s, address+"/status.json", &got, func() bool { return got.Partitions[0].Position == 1 && got.Ready })
}

// denyDescribeConfigs makes the brokers refuse to describe the settings of a topic.
func denyDescribeConfigs(fake *devstack.Fake, topic string) {
	fake.Cluster.ControlKey(int16(kmsg.DescribeConfigs), func(request kmsg.Request) (kmsg.Response, error, bool) {
		fake.Cluster.KeepControl()
		describe := request.(*kmsg.DescribeConfigsRequest)
		if describe.Resources[0].ResourceName != topic {
			return nil, nil, false
		}
		response := describe.ResponseKind().(*kmsg.DescribeConfigsResponse)
		resource := kmsg.NewDescribeConfigsResponseResource()
		resource.ResourceType, resource.ResourceName = describe.Resources[0].ResourceType, topic
		resource.ErrorCode = kerr.TopicAuthorizationFailed.Code
		response.Resources = append(response.Resources, resource)
		return response, nil, true
	})
}

// denyCreateTopics makes the brokers refuse to create topics until the variable allowed is true.
func denyCreateTopics(fake *devstack.Fake, allowed *atomic.Bool) {
	fake.Cluster.ControlKey(int16(kmsg.CreateTopics), func(request kmsg.Request) (kmsg.Response, error, bool) {
		fake.Cluster.KeepControl()
		create := request.(*kmsg.CreateTopicsRequest)
		if allowed.Load() {
			return nil, nil, false
		}
		response := create.ResponseKind().(*kmsg.CreateTopicsResponse)
		topic := kmsg.NewCreateTopicsResponseTopic()
		topic.Topic, topic.ErrorCode = create.Topics[0].Topic, kerr.TopicAuthorizationFailed.Code
		response.Topics = append(response.Topics, topic)
		return response, nil, true
	})
}

// The type lines is a log that can be read while it is written.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(p))
	return len(p), nil
}

// linesWith returns the lines that contain a text.
func (l *lines) linesWith(text string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.all {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}
