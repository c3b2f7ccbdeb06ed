package dlq

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
	"projector/internal/topic"
	"projector/projection"
	"projector/projection/event"
)

const (
	sourceTopic = "account-events"
	deadTopic   = "account-events.dlq"
)

var testStamp = Stamp{Group: "account-balance-projector", Projection: "account_balance"}

func newCluster(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	return devtest.Fake(t, devstack.FakeOptions{More: opts}).Cluster
}

func newPublisher(t *testing.T, cluster *kfake.Cluster) *Publisher {
	t.Helper()
	p, err := NewPublisher(PublisherConfig{
		Topic: deadTopic, Stamp: testStamp, Logger: slog.New(slog.DiscardHandler), Timeout: 30 * time.Second, // a busy machine may need seconds
		Client: []kgo.Opt{kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.MetadataMinAge(50 * time.Millisecond)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// soon returns a context with a deadline that only a hanging test reaches.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// letters returns n dead letters for version gaps. Their accounts are acc-0 … acc-(n-1), and their
// source offsets are 0 … n-1.
func letters(n int) []projection.DeadLetter {
	all := make([]projection.DeadLetter, n)
	for i := range all {
		account := fmt.Sprintf("acc-%d", i)
		all[i] = projection.DeadLetter{
			Record: projection.Record{
				Message: event.Message{Key: []byte(account), Value: []byte("value of " + account)},
				Topic:   sourceTopic, Offset: int64(i), Timestamp: 1767225600123,
			},
			Class: event.VersionGap, Message: "gap", Identified: true, AccountID: account, EventID: "e", Received: 9, Expected: new(int64(5)),
		}
	}
	return all
}

// The function published reads the DLQ topic. It returns how often each source offset appears, and
// the last entry of each source offset.
func published(t *testing.T, cluster *kfake.Cluster) (map[int64]int, map[int64]Entry) {
	t.Helper()
	counts, last := map[int64]int{}, map[int64]Entry{}
	for record, err := range topic.NewReader(devtest.Client(t, cluster.ListenAddrs()), deadTopic).Records(soon(t), topic.Scope{}) {
		if err != nil {
			t.Fatal(err)
		}
		entry, err := Parse(record)
		if err != nil {
			t.Fatal(err)
		}
		counts[entry.Offset]++
		last[entry.Offset] = entry
	}
	return counts, last
}

func assertPublishedOnce(t *testing.T, cluster *kfake.Cluster, n int) map[int64]Entry {
	t.Helper()
	counts, last := published(t, cluster)
	for offset := range int64(n) {
		if counts[offset] != 1 {
			t.Errorf("source offset %d was published %d times", offset, counts[offset])
		}
	}
	if len(counts) != n {
		t.Errorf("%d records were published, want %d", len(counts), n)
	}
	return last
}

func createTopic(t *testing.T, cluster *kfake.Cluster, name string, partitions int32, configs map[string]*string) {
	t.Helper()
	if _, err := kadm.NewClient(devtest.Client(t, cluster.ListenAddrs())).CreateTopic(soon(t), partitions, 1, configs, name); err != nil {
		t.Fatal(err)
	}
}
