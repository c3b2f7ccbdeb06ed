package devstack

import (
	"slices"
	"strings"
	"testing"
)

func TestKafkaPropertiesFitTheNumberOfBrokers(t *testing.T) {
	tests := map[int][]string{
		1: {
			"offsets.topic.replication.factor=1", "transaction.state.log.min.isr=1", "min.insync.replicas=1",
			"default.replication.factor=1", "controller.quorum.voters=1@127.0.0.1:101",
		},
		3: {
			"offsets.topic.replication.factor=3", "transaction.state.log.min.isr=2", "min.insync.replicas=2",
			"default.replication.factor=3", "controller.quorum.voters=1@127.0.0.1:101,2@127.0.0.1:102,3@127.0.0.1:103",
		},
	}
	for brokers, want := range tests {
		k := &Kafka{settings: map[string]string{"num.partitions": "7"}}
		k.addNodes(brokers)
		for i, node := range k.nodes {
			node.controllerPort = 101 + i
		}
		want = append(want, "num.partitions=7", "auto.create.topics.enable=false", "group.initial.rebalance.delay.ms=0")
		lines := strings.Split(string(k.properties(k.nodes[0])), "\n")
		for _, line := range want {
			if !slices.Contains(lines, line) {
				t.Errorf("%d brokers: no line %q in\n%s", brokers, line, strings.Join(lines, "\n"))
			}
		}
	}
}

func TestKafkaNamesWhatIsMissing(t *testing.T) {
	none := t.TempDir()
	withJava := programs(t, "", "java")
	tests := map[string]struct {
		path    string
		brokers int
		want    string
	}{
		"brokers": {none, 2, "1 or 3 brokers"},
		"java":    {none, 1, "install a Java runtime"},
		"maven":   {withJava, 1, "install Apache Maven"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PATH", test.path)
			t.Setenv("JAVA_HOME", "")
			t.Setenv("HOME", t.TempDir()) // so that the cache is empty
			t.Setenv("XDG_CACHE_HOME", "")
			_, err := StartKafka(t.Context(), KafkaOptions{Brokers: test.brokers})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestKafkaNodesAreNumberedFromOne(t *testing.T) {
	k := &Kafka{}
	k.addNodes(3)
	for id, known := range map[int]bool{0: false, 1: true, 3: true, 4: false} {
		if err := k.Kill(id); (err == nil) != known {
			t.Errorf("node %d: %v", id, err)
		}
	}
}
