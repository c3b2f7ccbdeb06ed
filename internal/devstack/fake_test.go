package devstack

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func startFake(t *testing.T, options FakeOptions) *Fake {
	t.Helper()
	fake, err := StartFake(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fake.Close(t.Context()) })
	return fake
}

func TestFakeCarriesRecords(t *testing.T) {
	for _, brokers := range []int{0, 1, 3} {
		fake := startFake(t, FakeOptions{Brokers: brokers})
		if got := len(fake.Addrs()); got != max(brokers, 1) {
			t.Errorf("brokers: got %d, want %d", got, max(brokers, 1))
		}
		createTopic(t, fake.Addrs(), "topic")
		produce(t, fake.Addrs(), "topic", "value")
		if got := consume(t, fake.Addrs(), "topic", 1); !slices.Equal(got, []string{"value"}) {
			t.Errorf("%d brokers: consumed %q", brokers, got)
		}
	}
}

func TestFakeCreatesOnlyTheConfiguredTopics(t *testing.T) {
	fake := startFake(t, FakeOptions{Topics: map[string]int32{"seeded": 3}})
	produce(t, fake.Addrs(), "seeded", "value")
	client := newClient(t, fake.Addrs(), kgo.AllowAutoTopicCreation())
	if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "typo", Value: []byte("x")}).FirstErr(); err == nil {
		t.Error("a topic was made by use")
	}
}

// From version 5 of CreateTopics on, kfake's answer has the topic's configs, in a form that
// kafka-topics.sh cannot read. StartFake therefore offers version 4 at most.
func TestFakeAnswersANewTopicWithoutConfigs(t *testing.T) {
	client := newClient(t, startFake(t, FakeOptions{}).Addrs())
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "topic", 3, 1
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Topics = append(req.Topics, topic)
	resp, err := req.RequestWith(t.Context(), client)
	if err != nil || len(resp.Topics) != 1 || resp.Topics[0].ErrorCode != 0 || resp.Version >= 5 {
		t.Errorf("%+v, %v", resp, err)
	}
}

func TestFakeKeepsItsFolder(t *testing.T) {
	dir := t.TempDir()
	first := startFake(t, FakeOptions{Dir: dir, Topics: map[string]int32{"kept": 1}})
	produce(t, first.Addrs(), "kept", "value")
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := startFake(t, FakeOptions{Dir: dir})
	if got := consume(t, second.Addrs(), "kept", 1); !slices.Equal(got, []string{"value"}) {
		t.Errorf("after restart: consumed %q", got)
	}
}
