package devtest

import (
	"os"
	"strings"
	"testing"

	"projector/internal/devstack"
)

// Cluster is a Kafka cluster, by its addresses (host:port).
type Cluster interface{ Addrs() []string }

// foreign is a cluster that was given by the environment.
type foreign []string

// Addrs implements Cluster.
func (f foreign) Addrs() []string { return f }

// foreignBrokers are the addresses in the environment, nil when there are none.
func foreignBrokers() foreign {
	if brokers := os.Getenv("PROJECTOR_TEST_BROKERS"); brokers != "" {
		return strings.Split(brokers, ",")
	}
	return nil
}

// Broker returns a Kafka cluster: a kfake of the test's own, or, as the
// environment says, a real Kafka shared by the process or a running one. Tests
// therefore use topics and groups of their own: Topic, and a group named after
// it. For faults and other special wishes see Fake.
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

// Fake returns an in-process cluster for this test alone, whatever the
// environment says.
func Fake(t testing.TB, options devstack.FakeOptions) *devstack.Fake {
	t.Helper()
	fake, err := devstack.StartFake(t.Context(), options)
	if err != nil {
		t.Fatalf("devtest: %v", err)
	}
	process.closeWith(t, fake.Close)
	return fake
}

// Kafka returns a real Kafka of 1 or 3 brokers for this test alone, to break.
// It takes seconds and much memory.
func Kafka(t testing.TB, options devstack.KafkaOptions) *devstack.Kafka {
	t.Helper()
	kafka, err := devstack.StartKafka(t.Context(), options)
	if err != nil {
		t.Fatalf("devtest: %v", err)
	}
	process.closeWith(t, kafka.Close)
	return kafka
}
