package compare_test

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"projector/internal/testbank/compare"
)

// TestEndsAreComplete shows that no partition is left out silently. Otherwise a check would not notice
// that records of this partition are missing.
func TestEndsAreComplete(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "events"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.RequestRetries(0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	admin := kadm.NewClient(client)
	if ends, err := compare.Ends(t.Context(), admin, "events"); err != nil || len(ends) != 2 {
		t.Errorf("a healthy topic: %v, %v", ends, err)
	}
	if ends, err := compare.Ends(t.Context(), admin, "absent"); err != nil || len(ends) != 0 {
		t.Errorf("a topic that does not exist: %v, %v", ends, err)
	}
	for name, fault := range map[string]kfake.Fault{
		"refused by the broker": {Keys: []kmsg.Key{kmsg.ListOffsets}, Partitions: []int32{1}, Err: kerr.UnknownServerError},
		"without a leader":      {Keys: []kmsg.Key{kmsg.Metadata, kmsg.ListOffsets}, Partitions: []int32{1}, Err: kerr.LeaderNotAvailable},
	} {
		fault.Topic, fault.Count = "events", -1
		handle := cluster.Fault(fault)
		ends, err := compare.Ends(t.Context(), admin, "events")
		handle.Remove()
		if !errors.Is(err, fault.Err) {
			t.Errorf("%s: ends %v, error %v, want %v", name, ends, err, fault.Err)
		}
	}
}
