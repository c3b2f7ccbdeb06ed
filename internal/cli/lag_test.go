package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

var lagFields = []string{"partition", "position", "end", "lag_records"}

func (s *stage) lag(args ...string) []map[string]any {
	s.t.Helper()
	return s.lines(append([]string{"lag"}, args...)...)
}

// seconds is the lag in seconds of the only partition; it fails when unknown.
func seconds(t *testing.T, lines []map[string]any) float64 {
	t.Helper()
	if len(lines) != 1 {
		t.Fatalf("%d partitions: %v", len(lines), lines)
	}
	n, known := lines[0]["lag_seconds"].(float64)
	if !known {
		t.Fatalf("lag_seconds: %v", lines[0]["lag_seconds"])
	}
	return n
}

func TestLagFromOutside(t *testing.T) {
	s := newStage(t)
	equal(t, pick(s.lag(), append(lagFields, "lag_seconds")...), "0 null 0 0 0")
	_, _, remark := s.command("lag")
	contains(t, remark, "account-balance-projector", "no position")

	s.produce(eventOf("acc", 1, `"1"`), eventOf("acc", 2, `"1"`))
	equal(t, pick(s.lag(), lagFields...), "0 null 2 2")
	s.consuming(nil)
	equal(t, pick(s.lag(), append(lagFields, "lag_seconds")...), "0 2 2 0 0")
	equal(t, keys(t, s.must("lag", "--output=json")), "topic partition position end lag_records lag_seconds")

	old := &kgo.Record{Topic: s.topic, Timestamp: time.Now().Add(-2 * time.Hour), Value: []byte(eventOf("acc", 3, `"1"`))}
	young := &kgo.Record{Topic: s.topic, Value: []byte(eventOf("acc", 4, `"1"`))}
	if err := s.client.ProduceSync(t.Context(), old, young).FirstErr(); err != nil {
		t.Fatal(err)
	}
	equal(t, pick(s.lag(), lagFields...), "0 2 4 2")
	if age := seconds(t, s.lag()); age < 7200 || age > 7260 {
		t.Errorf("the oldest record is 2 h old, but the lag is %v s", age)
	}
	table := s.must("lag")
	contains(t, table, "PARTITION", "BEHIND", "2h0m", "total")
	if lines := strings.Count(table, "\n"); lines != 3 {
		t.Errorf("%d lines:\n%s", lines, table)
	}
}

// The markers of transactions take offsets, and so do aborted records.
func TestLagAtTheEndOfTransactionsIsZero(t *testing.T) {
	s := newStage(t)
	s.produce(eventOf("acc", 1, `"1"`))
	s.transact(kgo.TryAbort, eventOf("acc", 2, `"5"`))
	s.transact(kgo.TryCommit, eventOf("acc", 2, `"1"`))
	s.produced += 4
	s.consuming(nil)
	equal(t, pick(s.lag(), append(lagFields, "lag_seconds")...), "0 5 5 0 0")

	// Aborted records wait for nobody to project them.
	s.transact(kgo.TryAbort, eventOf("acc", 3, `"1"`))
	if age := seconds(t, s.lag()); age != 0 {
		t.Errorf("nothing waits, but the lag is %v s", age)
	}
}

// transact produces one event in a transaction and ends it.
func (s *stage) transact(end kgo.TransactionEndTry, value string) {
	s.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.addrs...), kgo.TransactionalID(s.topic))
	if err != nil {
		s.t.Fatal(err)
	}
	defer client.Close()
	if err := client.BeginTransaction(); err != nil {
		s.t.Fatal(err)
	}
	if err := client.ProduceSync(s.t.Context(), &kgo.Record{Topic: s.topic, Value: []byte(value)}).FirstErr(); err != nil {
		s.t.Fatal(err)
	}
	if err := client.EndTransaction(s.t.Context(), end); err != nil {
		s.t.Fatal(err)
	}
}

func TestLagSaysThatThePositionMeansNothing(t *testing.T) {
	s := newStage(t)
	s.produce(eventOf("acc", 1, `"1"`))
	s.consuming(nil)
	s.produce(eventOf("acc", 2, `"1"`), eventOf("acc", 3, `"1"`))
	s.deleteRecords(2)
	_, out, remark := s.command("lag", "--output=json")
	contains(t, out, `"position":1,"end":3,"lag_records":2`)
	contains(t, remark, "offsets 1 to 1 were removed by retention", "position expired")

	if _, err := s.pool.Exec(t.Context(), "UPDATE projector_position SET topic_id = 'another'"); err != nil {
		t.Fatal(err)
	}
	_, out, remark = s.command("lag", "--output=json")
	contains(t, out, `"position":null,"end":3,"lag_records":1`)
	contains(t, remark, "topic recreated")
}

// deleteRecords removes what lies before an offset, as retention does.
func (s *stage) deleteRecords(before int64) {
	s.t.Helper()
	offsets := kadm.Offsets{}
	offsets.AddOffset(s.topic, 0, before, -1)
	answer, err := kadm.NewClient(s.client).DeleteRecords(s.t.Context(), offsets)
	if err == nil {
		err = answer.Error()
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func TestLagIsWatchedUntilStopped(t *testing.T) {
	s := newStage(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := &stopAfter{lines: 3, stop: stop}
	var stderr bytes.Buffer
	args := s.servers([]string{"lag", "--watch", "--interval=10ms", "--output=json"})
	if status := execute(ctx, args, out, &stderr); status != exitOK || out.seen < 3 {
		t.Errorf("status %d after %d looks\n%s", status, out.seen, stderr.String())
	}
}

// stopAfter stops what writes to it after some lines.
type stopAfter struct {
	seen, lines int
	stop        func()
}

func (w *stopAfter) Write(p []byte) (int, error) {
	if w.seen += bytes.Count(p, []byte("\n")); w.seen >= w.lines {
		w.stop()
	}
	return len(p), nil
}

func TestLagFailures(t *testing.T) {
	s := newStage(t)
	contains(t, s.refused(exitUsage, "lag", "--interval=0s"), "--interval")
	contains(t, s.refused(exitUsage, "lag", "--projection=nothing"), "--projection")
	var stderr bytes.Buffer
	missing := []string{"lag", "--database-url=" + s.url, "--brokers=" + strings.Join(s.addrs, ","), "--topic=nowhere"}
	if status := execute(t.Context(), missing, &bytes.Buffer{}, &stderr); status != exitFailed {
		t.Errorf("without a topic: status %d", status)
	}
	contains(t, stderr.String(), `topic "nowhere" does not exist`)
	for _, servers := range [][]string{
		{"--brokers=127.0.0.1:1", "--database-url=" + s.url},
		{"--brokers=" + strings.Join(s.addrs, ","), "--database-url=postgres://u:s3cr3t@127.0.0.1:1/db"},
	} {
		start := time.Now()
		if status := execute(t.Context(), append([]string{"lag", "--log-level=error"}, servers...), &bytes.Buffer{}, &stderr); status != exitFailed {
			t.Errorf("%s: status %d", servers[0], status)
		}
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("%s: took %v", servers[0], took)
		}
	}
	if strings.Contains(stderr.String(), "s3cr3t") {
		t.Error("a password was printed")
	}
	contains(t, stderr.String(), "reach Kafka", "reach PostgreSQL")
}
