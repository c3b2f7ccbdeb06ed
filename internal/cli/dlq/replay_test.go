package dlq_test

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
)

func TestReplayPlansAndApplies(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.SeveralDeadLetters()
	const plan = "null null poison, acc-a 1 poison, acc-a 3 waiting, acc-a 4 waiting, acc-a 6 waiting, acc-b 1 poison, acc-b 2 waiting"
	lines := s.Lines("dlq", "replay")
	clitest.Equal(t, clitest.Pick(lines, "account_id", "received_version", "plan"), plan)
	first, _, _ := strings.Cut(s.Must("dlq", "replay", "--output=json"), "\n")
	clitest.Equal(t, clitest.Keys(t, first), clitest.ListKeys+" plan")
	clitest.Contains(t, s.Must("dlq", "replay"), "4 waiting, 3 poison; nothing was changed, and --yes would apply none of them")
	lines, said := s.Some("dlq", "replay", "--yes", "--limit=1")
	clitest.Equal(t, clitest.Pick(lines, "plan", "result"), "poison poison")
	clitest.Contains(t, said, "1 of 1 records could not be applied")

	lines, said = s.Some("dlq", "replay", "--yes")
	clitest.Equal(t, clitest.Pick(lines, "result"), "poison, poison, waiting, waiting, waiting, poison, waiting")
	clitest.Contains(t, said, "7 of 7 records could not be applied")
	s.Must("account", "skip", "acc-a", "--version=2", "--reason=lost", "--yes")
	lines, _ = s.Some("dlq", "replay", "--account=acc-a", "--yes")
	clitest.Equal(t, clitest.Pick(lines, "received_version", "result"), "1 poison, 3 duplicate, 4 duplicate, 6 waiting")
	clitest.Equal(t, clitest.Pick(s.Lines("dlq", "list", "--account=acc-a", "--dlq-offset=2"), "replays"), "2")
	lines, _ = s.Some("dlq", "replay", "--account=acc-a", "--yes", "--max-replays=2")
	clitest.Contains(t, clitest.Pick(lines, "result"), "refused")
	clitest.Equal(t, clitest.Pick(s.Lines("dlq", "replay", "--limit=2"), "plan"), "poison, poison")
	clitest.Contains(t, s.Refused(exit.Usage, "dlq", "replay", "--class=nonsense"), "nonsense")
	clitest.Contains(t, s.Refused(exit.Usage, "dlq", "list", "--since=yesterday"), "--since")
}

func TestReplayFillsAHoleTheConsumerCouldNot(t *testing.T) {
	s := clitest.NewStage(t)
	// Events beyond the park limit are in the DLQ topic, but not in the database.
	s.Produce(clitest.EventOf("acc", 2, `"2"`), clitest.EventOf("acc", 3, `"4"`), clitest.EventOf("acc", 4, `"8"`), clitest.EventOf("acc", 5, `"16"`))
	t.Setenv("PARK_LIMIT", "2")
	s.Consuming(nil)
	clitest.Contains(t, s.Must("account", "show", "acc"), "2 of them are beyond the park limit")
	s.Produce(clitest.EventOf("acc", 1, `"1"`))
	s.Consuming(func() {
		s.Await("SELECT coalesce(max(version) = 3, false) FROM account_balance")
		clitest.Equal(t, clitest.Statuses(s.Lines("dlq", "list")), "acc 2 resolved, acc 3 resolved, acc 4 ready, acc 5 waiting")
		clitest.Equal(t, clitest.Pick(s.Lines("dlq", "replay", "--account=acc"), "plan"), "duplicate, duplicate, will_apply, will_apply")
		// Without a filter, resolved dead letters are not in the plan.
		clitest.Equal(t, clitest.Pick(s.Lines("dlq", "replay", "--yes"), "plan", "result"), "will_apply applied, will_apply applied")
	})
	clitest.Contains(t, s.Must("account", "show", "acc", "--output=json"), `"balance":31.00,"version":5`, `"stale":false`)
}

func TestReplayToATopicRaisesTheCount(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.SeveralDeadLetters()
	s.Must("migrate")
	args := []string{"dlq", "replay", "--to-topic=" + s.Topic, "--account=acc-b"}
	clitest.Equal(t, clitest.Pick(s.Lines(append(args, "--yes")...), "result"), "published, published")
	s.Produced += 2
	s.Consuming(nil)
	clitest.Equal(t, clitest.Pick(s.Lines("dlq", "list", "--account=acc-b"), "received_version", "offset", "replays"),
		"1 4 1, 2 5 1, 1 8 1, 2 9 1")
	lines, _ := s.Some(append(args, "--yes", "--max-replays=1")...)
	clitest.Contains(t, clitest.Pick(lines, "result"), "refused")
	clitest.Contains(t, s.Refused(exit.Usage, "dlq", "replay", "--to-topic="+s.Topic+".dlq"), "must not be the DLQ topic")
}

// Records that were published before an interrupt are in the topic, so they must be in the audit
// trail.
func TestAnInterruptedReplayToATopicIsOnRecord(t *testing.T) {
	t.Parallel()
	fake := devtest.Fake(t, devstack.FakeOptions{})
	s := clitest.StageOn(t, fake.Addrs())
	s.SeveralDeadLetters()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var taken atomic.Int32
	fake.Cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		taken.Add(1)
		interrupt() // the record is being sent, so it is published although the command is interrupted
		return nil, nil, false
	})
	args := s.Servers([]string{"dlq", "replay", "--to-topic=" + s.Topic, "--account=acc-b", "--limit=1", "--yes"})
	status := clitest.Execute(ctx, args, &bytes.Buffer{}, &bytes.Buffer{})
	var recorded int32
	if err := s.Pool.QueryRow(t.Context(), "SELECT count(*) FROM dlq_action WHERE result = 'published'").Scan(&recorded); err != nil {
		t.Fatal(err)
	}
	if taken.Load() != 1 || recorded != 1 {
		t.Errorf("status %d: %d records were taken, %d are on record", status, taken.Load(), recorded)
	}
}

// TestALargeRecordIsPublishedAgain publishes records that are larger than a batch of the Kafka client
// before it is compressed. They were accepted because they were compressed, or because of the topic's
// limit.
func TestALargeRecordIsPublishedAgain(t *testing.T) {
	s := clitest.NewStage(t)
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Addrs...), kgo.ProducerBatchMaxBytes(8<<20))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for i, size := range []int{0, 900_000, 2 << 20, 0} {
		value := clitest.Undated("a", i+1, `"1.00"`) + strings.Repeat(" ", size)
		if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: s.Topic, Key: []byte("k"), Value: []byte(value)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		s.Produced++
	}
	s.Consuming(nil)
	clitest.Contains(t, s.Must("dlq", "replay", "--to-topic="+s.Topic, "--yes"), "4 published\n")
}
