package position_test

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
	"projector/internal/devstack/devtest"
)

var lagFields = []string{"partition", "position", "end", "lag_records"}

func lag(s *clitest.Stage, args ...string) []map[string]any {
	s.T.Helper()
	return s.Lines(append([]string{"lag"}, args...)...)
}

// seconds returns the lag in seconds of the only partition. It fails the test if the lag is
// unknown.
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
	s := clitest.NewStage(t)
	clitest.Equal(t, clitest.Pick(lag(s), append(lagFields, "lag_seconds")...), "0 null 0 0 0")
	_, _, remark := s.Command("lag")
	clitest.Contains(t, remark, "account-balance-projector", "no position")

	s.Produce(clitest.EventOf("acc", 1, `"1"`), clitest.EventOf("acc", 2, `"1"`))
	clitest.Equal(t, clitest.Pick(lag(s), lagFields...), "0 null 2 2")
	s.Consuming(nil)
	clitest.Equal(t, clitest.Pick(lag(s), append(lagFields, "lag_seconds")...), "0 2 2 0 0")
	clitest.Equal(t, clitest.Keys(t, s.Must("lag", "--output=json")), "topic partition position end lag_records lag_seconds state reason")

	old := &kgo.Record{Topic: s.Topic, Timestamp: time.Now().Add(-2 * time.Hour), Value: []byte(clitest.EventOf("acc", 3, `"1"`))}
	young := &kgo.Record{Topic: s.Topic, Value: []byte(clitest.EventOf("acc", 4, `"1"`))}
	if err := s.Client.ProduceSync(t.Context(), old, young).FirstErr(); err != nil {
		t.Fatal(err)
	}
	clitest.Equal(t, clitest.Pick(lag(s), lagFields...), "0 2 4 2")
	if age := seconds(t, lag(s)); age < 7200 || age > 7260 {
		t.Errorf("the oldest record is 2 h old, but the lag is %v s", age)
	}
	_, _, said := s.Command("lag")
	clitest.Contains(t, said, "no instance owns: 0") // as position says
	table := s.Must("lag")
	clitest.Contains(t, table, "PARTITION", "BEHIND", "2h0m", "total")
	if lines := strings.Count(table, "\n"); lines != 3 {
		t.Errorf("%d lines:\n%s", lines, table)
	}
}

// TestLagAtTheEndOfTransactionsIsZero shows that the lag in seconds is 0 if only transaction
// markers and aborted records follow the position.
func TestLagAtTheEndOfTransactionsIsZero(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("acc", 1, `"1"`))
	transact(s, kgo.TryAbort, clitest.EventOf("acc", 2, `"5"`))
	transact(s, kgo.TryCommit, clitest.EventOf("acc", 2, `"1"`))
	s.Produced += 4
	s.Consuming(nil)
	clitest.Equal(t, clitest.Pick(lag(s), append(lagFields, "lag_seconds")...), "0 5 5 0 0")

	// An aborted record does not change the lag in seconds.
	transact(s, kgo.TryAbort, clitest.EventOf("acc", 3, `"1"`))
	if age := seconds(t, lag(s)); age != 0 {
		t.Errorf("nothing waits, but the lag is %v s", age)
	}
}

// transact produces one event in a transaction and ends the transaction.
func transact(s *clitest.Stage, end kgo.TransactionEndTry, value string) {
	s.T.Helper()
	client := devtest.Client(s.T, s.Addrs, kgo.TransactionalID(s.Topic))
	if err := client.BeginTransaction(); err != nil {
		s.T.Fatal(err)
	}
	if err := client.ProduceSync(s.T.Context(), &kgo.Record{Topic: s.Topic, Value: []byte(value)}).FirstErr(); err != nil {
		s.T.Fatal(err)
	}
	if err := client.EndTransaction(s.T.Context(), end); err != nil {
		s.T.Fatal(err)
	}
}

func TestLagSaysThatThePositionMeansNothing(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("acc", 1, `"1"`))
	s.Consuming(nil)
	s.Produce(clitest.EventOf("acc", 2, `"1"`), clitest.EventOf("acc", 3, `"1"`))
	s.DeleteRecords(2)
	_, out, remark := s.Command("lag", "--output=json")
	clitest.Contains(t, out, `"position":1,"end":3,"lag_records":2`)
	clitest.Contains(t, remark, "offsets 1 to 1 were removed by retention", "position expired")

	if _, err := s.Pool.Exec(t.Context(), "UPDATE projector_position SET topic_id = 'another'"); err != nil {
		t.Fatal(err)
	}
	_, out, remark = s.Command("lag", "--output=json")
	clitest.Contains(t, out, `"position":null,"end":3,"lag_records":1`)
	clitest.Contains(t, remark, "topic recreated")
}

// TestLagMarksWhoDoesNotContinue shows that the table and the JSON say why a partition does not
// continue.
func TestLagMarksWhoDoesNotContinue(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("acc", 1, `"1"`))
	s.Consuming(nil)
	s.Must("pause", "--all", "--reason=new column", "--actor=me", "--yes")
	clitest.Equal(t, clitest.Pick(lag(s), "state", "reason"), "paused paused by me: new column")
	_, table, said := s.Command("lag")
	clitest.Contains(t, clitest.Squeezed(table), "0 1 1 0 0s paused")
	clitest.Contains(t, said, "partition 0: paused by me: new column")
	s.Exec("UPDATE projector_position SET breaker_reason = 'a storm'")
	clitest.Equal(t, clitest.Pick(lag(s), "state", "reason"), "breaker_open a storm")
}

// TestWithoutKafka shows that the commands print what the database has, and name the broker that
// does not answer.
func TestWithoutKafka(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("acc", 1, `"1"`))
	s.Consuming(nil)
	s.Must("pause", "--all", "--reason=new column", "--actor=me", "--yes")
	frozen, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0") // accepts connections and does not answer
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = frozen.Close() })
	for _, command := range []string{"position", "lag"} {
		var out, stderr bytes.Buffer
		args := []string{command, "--brokers=" + frozen.Addr().String(), "--database-url=" + s.URL, "--topic=" + s.Topic, "--output=json", "--log-level=error"}
		if status := clitest.Execute(t.Context(), args, &out, &stderr); status != exit.Failed {
			t.Errorf("%s: status %d", command, status)
		}
		clitest.Contains(t, out.String(), `"partition":0,"position":1`, `"end":null`, `"lag_records":null`, `"state":"paused"`, "paused by me: new column")
		clitest.Contains(t, stderr.String(), "reach Kafka", "no answer from "+frozen.Addr().String()+" within 10s")
	}
}

func TestLagIsWatchedUntilStopped(t *testing.T) {
	s := clitest.NewStage(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := &stopAfter{lines: 3, stop: stop}
	var stderr bytes.Buffer
	args := s.Servers([]string{"lag", "--watch", "--interval=10ms", "--output=json"})
	if status := clitest.Execute(ctx, args, out, &stderr); status != exit.OK || out.seen < 3 {
		t.Errorf("status %d after %d looks\n%s", status, out.seen, stderr.String())
	}
}

// stopAfter stops the command that writes to it after some lines.
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
	s := clitest.NewStage(t)
	clitest.Contains(t, s.Refused(exit.Usage, "lag", "--interval=0s"), "--interval")
	clitest.Contains(t, s.Refused(exit.Usage, "lag", "--projection=nothing"), "--projection")
	var stderr bytes.Buffer
	missing := []string{"lag", "--database-url=" + s.URL, "--brokers=" + strings.Join(s.Addrs, ","), "--topic=nowhere"}
	if status := clitest.Execute(t.Context(), missing, &bytes.Buffer{}, &stderr); status != exit.Failed {
		t.Errorf("without a topic: status %d", status)
	}
	clitest.Contains(t, stderr.String(), `topic "nowhere" (--topic, KAFKA_TOPIC) does not exist on these brokers`)
	for _, servers := range [][]string{
		{"--brokers=127.0.0.1:1", "--database-url=" + s.URL},
		{"--brokers=" + strings.Join(s.Addrs, ","), "--database-url=postgres://u:s3cr3t@127.0.0.1:1/db"},
	} {
		start := time.Now()
		if status := clitest.Execute(t.Context(), append([]string{"lag", "--log-level=error"}, servers...), &bytes.Buffer{}, &stderr); status != exit.Failed {
			t.Errorf("%s: status %d", servers[0], status)
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("%s: took %v", servers[0], took)
		}
	}
	if strings.Contains(stderr.String(), "s3cr3t") {
		t.Error("a password was printed")
	}
	clitest.Contains(t, stderr.String(), "reach Kafka", "reach PostgreSQL")
}

// TestLagSaysThatATransactionIsOpen shows that a lag of 0 is not the whole result while a
// transaction is open. A committed event after the transaction's first record cannot be read yet.
func TestLagSaysThatATransactionIsOpen(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("acc", 1, `"1"`))
	s.Consuming(nil)
	_, _, said := s.Command("lag")
	if strings.Contains(said, "transaction") {
		t.Errorf("without a transaction: %s", said)
	}
	producer, err := kgo.NewClient(kgo.SeedBrokers(s.Addrs...), kgo.TransactionalID(s.Topic))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(producer.Close)
	if err := producer.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	open := &kgo.Record{Topic: s.Topic, Value: []byte(clitest.EventOf("acc", 2, `"1"`))}
	if err := producer.ProduceSync(t.Context(), open).FirstErr(); err != nil {
		t.Fatal(err)
	}
	s.Produce(clitest.EventOf("other", 1, `"1"`))
	for _, command := range []string{"lag", "position"} {
		_, _, said = s.Command(command)
		clitest.Contains(t, said, "partition 0: a transaction is open; its records, and those after it, cannot be read yet and are not counted")
	}
	if err := producer.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	clitest.Equal(t, clitest.Pick(lag(s), lagFields...), "0 1 4 3")
}
