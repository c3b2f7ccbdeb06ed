package devtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/devstack"
)

// Cluster is a Kafka cluster. Addrs returns its addresses (host:port).
type Cluster interface{ Addrs() []string }

// foreign is a cluster that an environment variable names.
type foreign []string

func (f foreign) Addrs() []string { return f }

// foreignBrokers returns the brokers that an environment variable names, or nil.
func foreignBrokers() foreign {
	if brokers := os.Getenv("PROJECTOR_TEST_BROKERS"); brokers != "" {
		return strings.Split(brokers, ",")
	}
	return nil
}

// Broker returns a Kafka cluster. By default it is a kfake for this test alone. Environment
// variables choose a real Kafka that the whole process shares, or a cluster that already runs. A
// test must therefore use its own topics (see Topic) and name its groups after them. A test that
// needs faults or special options calls Fake.
func Broker(t testing.TB) Cluster {
	t.Helper()
	if brokers := foreignBrokers(); brokers != nil {
		return brokers
	}
	switch kind := os.Getenv("PROJECTOR_TEST_KAFKA"); kind {
	case "", "fake":
		return Fake(t, devstack.FakeOptions{})
	case "real":
		kafka, err := process.sharedKafka(t.Context())
		if err != nil {
			t.Fatalf("devtest: no broker: %v", err)
		}
		return kafka
	default:
		t.Fatalf("devtest: PROJECTOR_TEST_KAFKA is %q: use fake or real", kind)
		return nil
	}
}

// Fake returns an in-process cluster for this test alone. It ignores the environment variables.
func Fake(t testing.TB, options devstack.FakeOptions) *devstack.Fake {
	t.Helper()
	fake, err := devstack.StartFake(t.Context(), options)
	if err != nil {
		t.Fatalf("devtest: %v", err)
	}
	process.closeWith(t, fake.Close)
	return fake
}

// Kafka returns a real Kafka of 1 or 3 brokers for this test alone. The test may break it. The
// start takes seconds and much memory.
func Kafka(t testing.TB, options devstack.KafkaOptions) *devstack.Kafka {
	t.Helper()
	kafka, err := devstack.StartKafka(t.Context(), options)
	if err != nil {
		t.Fatalf("devtest: %v", err)
	}
	process.closeWith(t, kafka.Close)
	return kafka
}

// Client returns a Kafka client that is closed when the test ends.
func Client(t testing.TB, addrs []string, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(addrs...)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

const (
	topicLimit = 3 * time.Minute
	// nameRunes is the maximum number of characters of a test's name in the names of its topics.
	nameRunes = 60
)

var notInTopic = regexp.MustCompile(`[^a-zA-Z0-9.-]+`)

// Topic creates a topic with a unique name and returns the name. The topic has the cluster's
// default number of replicas, and every partition has a leader when Topic returns. On a cluster
// that an environment variable names, the topic is deleted when the test ends.
func Topic(t testing.TB, addrs []string, partitions int32) string {
	t.Helper()
	name := notInTopic.ReplaceAllString(t.Name(), "-")
	name = uniqueName(strings.ToLower(name[:min(len(name), nameRunes)]))
	name = strings.ReplaceAll(name, "_", "-") // Kafka warns of names that mix "_" and "."
	if err := administer(addrs, func(ctx context.Context, admin *kadm.Client) error {
		if err := createTopic(ctx, admin, name, partitions); err != nil {
			return err
		}
		return awaitLeaders(ctx, admin, name, int(partitions))
	}); err != nil {
		t.Fatalf("devtest: create topic %s: %v", name, err)
	}
	if slices.Equal(addrs, foreignBrokers()) {
		t.Cleanup(func() { deleteTopic(t, addrs, name) })
	}
	return name
}

// createTopic creates a topic whose name is unique. On a busy machine, Kafka's controller may miss the
// heartbeats of a broker for some seconds. It then knows of too few brokers and refuses a topic. The
// client repeats a request that was not answered in time, so the topic may exist by then.
func createTopic(ctx context.Context, admin *kadm.Client, name string, partitions int32) error {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		_, err := admin.CreateTopic(ctx, partitions, -1, nil, name)
		if errors.Is(err, kerr.TopicAlreadyExists) {
			return nil
		}
		if !errors.Is(err, kerr.InvalidReplicationFactor) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-ticker.C:
		}
	}
}

// awaitLeaders returns when the brokers name a leader for every partition. A real Kafka answers
// CreateTopics before all brokers know the topic.
func awaitLeaders(ctx context.Context, admin *kadm.Client, name string, partitions int) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		metadata, err := admin.Metadata(ctx, name)
		if err == nil && len(led(metadata.Topics[name].Partitions)) == partitions {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("partitions without a leader: %w", ctx.Err())
		case <-ticker.C:
		}
	}
}

func led(partitions kadm.PartitionDetails) []int32 {
	var ids []int32
	for id, partition := range partitions {
		if partition.Err == nil && partition.Leader >= 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

func deleteTopic(t testing.TB, addrs []string, name string) {
	t.Helper()
	if err := administer(addrs, func(ctx context.Context, admin *kadm.Client) error {
		_, err := admin.DeleteTopic(ctx, name)
		return err
	}); err != nil {
		t.Errorf("devtest: delete topic %s: %v", name, err)
	}
}

func administer(addrs []string, do func(context.Context, *kadm.Client) error) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(addrs...))
	if err != nil {
		return fmt.Errorf("kafka client: %w", err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), topicLimit)
	defer cancel()
	return do(ctx, kadm.NewClient(client))
}

// Registry returns a real schema registry for this test alone. The test may stop and start it. The
// start takes seconds and 250 MB of memory.
func Registry(t testing.TB) *devstack.Registry {
	t.Helper()
	registry, err := devstack.StartRegistry(t.Context())
	if err != nil {
		t.Fatalf("devtest: %v", err)
	}
	process.closeWith(t, registry.Close)
	return registry
}
