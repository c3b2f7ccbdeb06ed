package clitest

import (
	"fmt"
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

// LeaderStage is a Stage on which partition 1 can lose its leader.
type LeaderStage struct {
	*Stage
	Fake *devstack.Fake
}

const StagePartitions = 3

// NewLeaderStage makes a stage with its own broker.
func NewLeaderStage(t *testing.T) LeaderStage {
	t.Helper()
	fake := devtest.Fake(t, devstack.FakeOptions{})
	return LeaderStage{stageOf(t, fake.Addrs(), StagePartitions), fake}
}

// LoseLeader makes the brokers report that partition 1 of a topic has no leader, until the returned
// function is called.
func (s LeaderStage) LoseLeader(topic string) (back func()) {
	return s.Fake.Cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Metadata}, Topic: topic, Partitions: []int32{1}, Err: kerr.LeaderNotAvailable, Count: -1,
	}).Remove
}

// produceToEach produces one record to each partition of a topic.
func (s LeaderStage) produceToEach(record func(partition int32) *kgo.Record) {
	s.T.Helper()
	client := devtest.Client(s.T, s.Addrs, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for p := range int32(StagePartitions) {
		r := record(p)
		r.Partition = p
		if err := client.ProduceSync(s.T.Context(), r).FirstErr(); err != nil {
			s.T.Fatal(err)
		}
	}
}

// Events produces one event with the given version to each partition. The events have different
// accounts.
func (s LeaderStage) Events(version int) {
	s.T.Helper()
	s.produceToEach(func(p int32) *kgo.Record {
		return &kgo.Record{Topic: s.Topic, Value: []byte(EventOf(fmt.Sprintf("acc-%d", p), version, `"1"`))}
	})
	s.Produced += StagePartitions
}

// DeadLetters produces one dead letter to each partition of the DLQ topic. The dead letters have
// different accounts. The event of each dead letter is the first event of its account, so the event
// could be applied now.
func (s LeaderStage) DeadLetters() {
	s.T.Helper()
	if _, err := kadm.NewClient(s.Client).CreateTopic(s.T.Context(), StagePartitions, -1, nil, s.Topic+".dlq"); err != nil {
		s.T.Fatal(err)
	}
	s.produceToEach(func(p int32) *kgo.Record {
		account := fmt.Sprintf("acc-%d", p)
		return dlq.Record(projection.DeadLetter{
			Class: event.MalformedPayload, Message: "bad", AccountID: account, EventID: account + "-1", Received: 1,
			Record: projection.Record{
				Topic: s.Topic, Offset: int64(p), Message: event.Message{Key: []byte(account), Value: []byte(EventOf(account, 1, `"1"`))},
			},
		}, dlq.Stamp{Group: "g", Projection: readmodel.BalanceName}, s.Topic+".dlq", time.Now())
	})
}

// Squeezed replaces repeated spaces in a table with one space.
func Squeezed(table string) string {
	var lines []string
	for line := range strings.Lines(table) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}
