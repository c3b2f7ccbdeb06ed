package cli

import (
	"bytes"
	"context"
	"encoding/json"
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

	"projector/dlq"
	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
)

// leaderStage is a stage whose partitions can lose their leaders. Partition 1 does.
type leaderStage struct {
	*stage
	fake *devstack.Fake
}

const stagePartitions = 3

func newLeaderStage(t *testing.T) leaderStage {
	t.Helper()
	fake := devtest.Fake(t, devstack.FakeOptions{})
	return leaderStage{stageOf(t, fake.Addrs(), stagePartitions), fake}
}

// loseLeader has the brokers say that nobody leads partition 1 of a topic, until back is
// called.
func (s leaderStage) loseLeader(topic string) (back func()) {
	return s.fake.Cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Metadata}, Topic: topic, Partitions: []int32{1}, Err: kerr.LeaderNotAvailable, Count: -1,
	}).Remove
}

// produceToEach produces one record to each partition of a topic.
func (s leaderStage) produceToEach(record func(partition int32) *kgo.Record) {
	s.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		s.t.Fatal(err)
	}
	defer client.Close()
	for p := range int32(stagePartitions) {
		r := record(p)
		r.Partition = p
		if err := client.ProduceSync(s.t.Context(), r).FirstErr(); err != nil {
			s.t.Fatal(err)
		}
	}
}

// events produces the same version of another account to each partition.
func (s leaderStage) events(version int) {
	s.t.Helper()
	s.produceToEach(func(p int32) *kgo.Record {
		return &kgo.Record{Topic: s.topic, Value: []byte(eventOf(fmt.Sprintf("acc-%d", p), version, `"1"`))}
	})
	s.produced += stagePartitions
}

// letters puts a dead letter of another account into each partition of the DLQ topic:
// first events that were poison once and would be applied now.
func (s leaderStage) letters() {
	s.t.Helper()
	if _, err := kadm.NewClient(s.client).CreateTopic(s.t.Context(), stagePartitions, -1, nil, s.topic+".dlq"); err != nil {
		s.t.Fatal(err)
	}
	s.produceToEach(func(p int32) *kgo.Record {
		account := fmt.Sprintf("acc-%d", p)
		return dlq.Record(projection.DeadLetter{
			Class: event.MalformedPayload, Message: "bad", AccountID: account, EventID: account + "-1", Received: 1,
			Record: projection.Record{
				Topic: s.topic, Offset: int64(p), Message: event.Message{Key: []byte(account), Value: []byte(eventOf(account, 1, `"1"`))},
			},
		}, dlq.Stamp{Group: "g", Projection: readmodel.BalanceName}, s.topic+".dlq", time.Now())
	})
}

// some runs a command that has to fail, although it reports something, and returns the
// JSON lines it printed and what it said.
func (s leaderStage) some(args ...string) (lines []map[string]any, said string) {
	s.t.Helper()
	began := time.Now()
	status, out, errOut := s.command(append(args, "--output=json")...)
	if took := time.Since(began); status != exitFailed || took > 30*time.Second {
		s.t.Fatalf("%v: status %d after %v\n%s%s", args, status, took, out, errOut)
	}
	for line := range strings.Lines(out) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			s.t.Fatalf("%v: %v\n%s", args, err, line)
		}
		lines = append(lines, m)
	}
	return lines, errOut
}

func TestLagNamesAPartitionWithoutALeader(t *testing.T) {
	t.Parallel()
	s := newLeaderStage(t)
	s.events(1)
	s.consuming(nil)
	s.events(2)
	back := s.loseLeader(s.topic)

	lines, said := s.some("lag")
	equal(t, pick(lines, lagFields...), "0 1 2 1, 1 1 null null, 2 1 2 1")
	if len(lines) != stagePartitions || lines[1]["lag_seconds"] != nil {
		t.Errorf("the partition without a leader: %v", lines)
	}
	contains(t, said, "partition 1 of topic "+s.topic, "LEADER_NOT_AVAILABLE", "bring back")
	if strings.Contains(said, "partition 0") || strings.Contains(said, "retention") {
		t.Errorf("it says of others what is not so:\n%s", said)
	}
	status, table, said := s.command("lag")
	contains(t, said, "partition 1 of topic "+s.topic)
	for _, row := range []string{"0 1 2 1", "1 1 ? ? ?", "2 1 2 1", "total ? ?"} {
		if !strings.Contains(squeezed(table), "\n"+row) {
			t.Errorf("status %d, and no row %q in\n%s", status, row, table)
		}
	}
	back()
	equal(t, pick(s.lag(), lagFields...), "0 1 2 1, 1 1 2 1, 2 1 2 1")
}

// A rebuild needs all partitions: it waits for a leader that is being elected, and says
// which partition has none.
func TestRebuildNamesAPartitionWithoutALeader(t *testing.T) {
	t.Parallel()
	s := newLeaderStage(t)
	s.events(1)
	s.consuming(nil)
	back := s.loseLeader(s.topic)
	began := time.Now()
	contains(t, s.refused(exitFailed, "rebuild"), "partition 1 of topic "+s.topic, "LEADER_NOT_AVAILABLE", "bring back")
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
	elected := time.AfterFunc(time.Second, back)
	defer elected.Stop()
	contains(t, s.must("rebuild"), "3 are right")
}

// squeezed has one space between words.
func squeezed(table string) string {
	var lines []string
	for line := range strings.Lines(table) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

// Who watches an outage wants to see it through.
func TestLagIsWatchedThroughAnOutage(t *testing.T) {
	t.Parallel()
	s := newLeaderStage(t)
	s.events(1)
	s.loseLeader(s.topic)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := &stopAfter{lines: 3 * stagePartitions, stop: stop}
	var stderr bytes.Buffer
	args := s.servers([]string{"lag", "--watch", "--interval=10ms", "--output=json"})
	if status := execute(ctx, args, out, &stderr); status != exitOK || out.seen < 3*stagePartitions {
		t.Errorf("status %d after %d lines", status, out.seen)
	}
	contains(t, stderr.String(), "partition 1 of topic "+s.topic)
}

// A leader that is named and has not taken over: every answer for the partition is a
// refusal, for longer than anybody waits.
func TestLagDoesNotWaitForAPartition(t *testing.T) {
	t.Parallel()
	s := newLeaderStage(t)
	s.events(1)
	s.fake.Cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: s.topic, Partitions: []int32{1}, Err: kerr.NotLeaderForPartition, Count: -1,
	})
	lines, said := s.some("lag")
	equal(t, pick(lines, lagFields...), "0 null 1 1, 1 null null null, 2 null 1 1")
	contains(t, said, "partition 1 of topic "+s.topic, "NOT_LEADER_FOR_PARTITION")
}

func TestDeadLettersOfTheOtherPartitions(t *testing.T) {
	t.Parallel()
	s := newLeaderStage(t)
	s.letters()
	back := s.loseLeader(s.topic + ".dlq")
	const others = "0 acc-0 ready, 2 acc-2 ready"
	named := []string{"partition 1 of topic " + s.topic + ".dlq", "LEADER_NOT_AVAILABLE", "bring back"}

	lines, said := s.some("dlq", "list")
	equal(t, pick(lines, "dlq_partition", "account_id", "status"), others)
	contains(t, said, named...)
	status, out, said := s.command("dlq", "list", "--account=acc-1")
	contains(t, said, named...)
	if status != exitFailed || strings.Contains(out, "no dead letters\n") {
		t.Errorf("status %d, and of what was not read it says:\n%s", status, out)
	}
	equal(t, pick(s.lines("dlq", "list", "--dlq-partition=0,2"), "dlq_partition", "account_id", "status"), others)
	lines, said = s.some("dlq", "list", "--dlq-partition=0,1", "--dlq-offset=0")
	equal(t, pick(lines, "dlq_partition", "account_id"), "0 acc-0")
	contains(t, said, named...)

	lines, said = s.some("dlq", "export")
	equal(t, pick(lines, "dlq_partition"), "0, 2")
	contains(t, said, named...)
	file := filepath.Join(t.TempDir(), "dead.jsonl")
	contains(t, s.refused(exitFailed, "dlq", "export", "--file="+file), named...)
	text, err := os.ReadFile(file)
	if err != nil || strings.Count(string(text), "\n") != 2 {
		t.Errorf("exported %d dead letters, %v", strings.Count(string(text), "\n"), err)
	}
	contains(t, s.must("dlq", "replay", "--from-file="+file), "2 will_apply")

	contains(t, s.must("dlq", "show", "2/0"), "acc-2-1")
	contains(t, s.refused(exitFailed, "dlq", "show", "1/0"), named...)
	back()
	equal(t, pick(s.lines("dlq", "list"), "account_id"), "acc-0, acc-1, acc-2")
}

// What is not known whole is not acted upon, unless somebody says which part of it.
func TestRepairsOfAnIncompleteSelectionAreRefused(t *testing.T) {
	t.Parallel()
	s := newLeaderStage(t)
	s.letters()
	s.loseLeader(s.topic + ".dlq")
	for _, args := range [][]string{{"dlq", "replay"}, {"dlq", "discard", "--reason=known"}} {
		lines, said := s.some(args...)
		equal(t, pick(lines, "account_id"), "acc-0, acc-2") // the plan of what can be read
		contains(t, said, "partition 1 of topic "+s.topic+".dlq")

		lines, said = s.some(append(args, "--yes")...)
		equal(t, pick(lines, "account_id"), "")
		contains(t, said, "nothing was changed", "--dlq-partition 0,2")
	}
	var changed int
	err := s.pool.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM dlq_action) + (SELECT count(*) FROM account_balance)").Scan(&changed)
	if err != nil || changed != 0 {
		t.Fatalf("changed %d rows, %v", changed, err)
	}
	equal(t, pick(s.lines("dlq", "discard", "--reason=known", "--yes", "--dlq-partition=0"), "account_id", "result"), "acc-0 discarded")
	equal(t, pick(s.lines("dlq", "replay", "--yes", "--dlq-partition=0,2"), "account_id", "result"), "acc-2 applied")
}
