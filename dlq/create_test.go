package dlq

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"projector/internal/devstack/devtest"
	"projector/internal/topic"
)

func TestEnsureTopicFollowsTheSource(t *testing.T) {
	cluster := newCluster(t, kfake.NumBrokers(3))
	adm := kadm.NewClient(devtest.Client(t, cluster.ListenAddrs()))
	configs := map[string]*string{topic.MaxMessageBytes: new("5000000")}
	if _, err := adm.CreateTopic(soon(t), 7, 3, configs, sourceTopic); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time the topic exists already
		if err := EnsureTopic(soon(t), adm, deadTopic, sourceTopic); err != nil {
			t.Fatal(err)
		}
	}
	adm = kadm.NewClient(devtest.Client(t, cluster.ListenAddrs())) // a client with an empty cache
	details, err := adm.ListTopics(soon(t), deadTopic)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(details[deadTopic].Partitions); n != 7 {
		t.Errorf("%d partitions, want 7", n)
	}
	if n := details[deadTopic].Partitions.NumReplicas(); n != 3 {
		t.Errorf("%d replicas, want 3", n)
	}
	for key, want := range map[string]string{topic.MaxMessageBytes: "5065536", topic.CleanupPolicy: "delete"} {
		if got := topicConfig(t, adm, key); got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
}

func topicConfig(t *testing.T, adm *kadm.Client, key string) string {
	t.Helper()
	described, err := adm.DescribeTopicConfigs(soon(t), deadTopic)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range described[0].Configs {
		if c.Key == key {
			return c.MaybeValue()
		}
	}
	return ""
}

func TestEnsureTopicLeavesAnExistingTopicAlone(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(2, deadTopic), kfake.SeedTopics(5, sourceTopic))
	adm := kadm.NewClient(devtest.Client(t, cluster.ListenAddrs()))
	if err := EnsureTopic(soon(t), adm, deadTopic, sourceTopic); err != nil {
		t.Fatal(err)
	}
	details, err := adm.ListTopics(soon(t), deadTopic)
	if err != nil || len(details[deadTopic].Partitions) != 2 {
		t.Errorf("%d partitions, %v", len(details[deadTopic].Partitions), err)
	}
}

// TestEnsureTopicRace shows that several instances can create the topic at the same time.
func TestEnsureTopicRace(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(5, sourceTopic))
	ctx := soon(t)
	var instances sync.WaitGroup
	for range 8 {
		adm := kadm.NewClient(devtest.Client(t, cluster.ListenAddrs()))
		instances.Go(func() {
			if err := EnsureTopic(ctx, adm, deadTopic, sourceTopic); err != nil {
				t.Error(err)
			}
		})
	}
	instances.Wait()
}

func TestEnsureTopicWithoutASource(t *testing.T) {
	cluster := newCluster(t)
	err := EnsureTopic(soon(t), kadm.NewClient(devtest.Client(t, cluster.ListenAddrs())), deadTopic, sourceTopic)
	if err == nil || !strings.Contains(err.Error(), sourceTopic) {
		t.Fatal(err)
	}
}

// TestEnsureTopicNamesTheMissingGrant shows that the error names the permission that the user does
// not have.
func TestEnsureTopicNamesTheMissingGrant(t *testing.T) {
	allow := func(topic string, op kmsg.ACLOperation) kfake.ACL {
		return kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: topic, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true}
	}
	tests := []struct {
		name   string
		grants []kfake.ACL
		want   []string
	}{
		{
			"no CREATE",
			[]kfake.ACL{allow(sourceTopic, kmsg.ACLOperationRead), allow(deadTopic, kmsg.ACLOperationWrite)},
			[]string{deadTopic, "missing ACL: CREATE", "beforehand with 3 partitions"},
		},
		{"no DESCRIBE", []kfake.ACL{allow(sourceTopic, kmsg.ACLOperationRead)}, []string{deadTopic, "missing ACL: DESCRIBE"}},
		{"not even the source", []kfake.ACL{allow(deadTopic, kmsg.ACLOperationWrite)}, []string{sourceTopic, "missing ACL: DESCRIBE"}},
		{"all but the source's settings", []kfake.ACL{
			allow(sourceTopic, kmsg.ACLOperationRead),
			allow(deadTopic, kmsg.ACLOperationWrite), allow(deadTopic, kmsg.ACLOperationCreate),
		}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cluster := newCluster(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.SeedTopics(3, sourceTopic),
				kfake.Superuser("PLAIN", "admin", "admin"), kfake.User("PLAIN", "projector", "secret", tt.grants...))
			client := devtest.Client(t, cluster.ListenAddrs(), kgo.SASL(plain.Auth{User: "projector", Pass: "secret"}.AsMechanism()))
			err := EnsureTopic(soon(t), kadm.NewClient(client), deadTopic, sourceTopic)
			if tt.want == nil {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if !errors.Is(err, kerr.TopicAuthorizationFailed) {
				t.Fatalf("error %v", err)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
		})
	}
}
