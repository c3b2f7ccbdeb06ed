package devstack

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func newClient(t *testing.T, addrs []string, more ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append(more, kgo.SeedBrokers(addrs...))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseAllowingRebalance)
	return client
}

func createTopic(t *testing.T, addrs []string, topic string) {
	t.Helper()
	if _, err := kadm.NewClient(newClient(t, addrs)).CreateTopic(t.Context(), 2, -1, nil, topic); err != nil {
		t.Fatal(err)
	}
}

// produce writes one record with acks=all.
func produce(t *testing.T, addrs []string, topic, value string) {
	t.Helper()
	client := newClient(t, addrs, kgo.UnknownTopicRetries(-1))
	record := &kgo.Record{Topic: topic, Key: []byte("key"), Value: []byte(value)}
	if err := client.ProduceSync(t.Context(), record).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// consume reads n values through a new consumer group and commits the offset after them.
func consume(t *testing.T, addrs []string, topic string, n int) []string {
	t.Helper()
	client := newClient(t, addrs, kgo.ConsumeTopics(topic), kgo.ConsumerGroup("group-"+randomName()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	var values []string
	for len(values) < n {
		fetches := client.PollFetches(t.Context())
		if err := fetches.Err0(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(record *kgo.Record) { values = append(values, string(record.Value)) })
	}
	if err := client.CommitUncommittedOffsets(context.Background()); err != nil {
		t.Fatal(err)
	}
	return values
}
