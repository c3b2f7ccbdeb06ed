package rebuild

import (
	"strings"
	"testing"

	"projector/internal/cli/change"
	"projector/internal/topic"
	"projector/readmodel/balance"
	"projector/readmodel/rebuild"
)

// The type limits is a projection whose Definition a rebuild does not know.
type limits struct{ balance.Definition }

func (limits) Name() string { return "account_limits" }

// TestRebuildRefusesADefinitionItDoesNotKnow shows that an unknown definition is refused and not
// treated as another one.
func TestRebuildRefusesADefinitionItDoesNotKnow(t *testing.T) {
	r := &rebuilding{cmd: &options{kind: limits{}}, on: &change.On{}}
	if err := r.open(t.Context()); err == nil || !strings.Contains(err.Error(), "account_limits cannot be rebuilt") {
		t.Errorf("%v", err)
	}
}

// A partition that was added to the topic during the rebuild is refused. The reason must be true:
// the partition exists, and a repeated rebuild reads it.
func TestAPartitionThatWasAddedMeanwhile(t *testing.T) {
	r := &rebuilding{cmd: &options{}, topic: topic.Extents{Partitions: make([]topic.Extent, 1)}}
	if ends, err := r.ends([]rebuild.TopicPosition{{Partition: 0, Next: 7}}); err != nil || ends[0] != 7 {
		t.Errorf("%v %v", ends, err)
	}
	if _, err := r.ends([]rebuild.TopicPosition{{Partition: 1, Next: 7}}); err == nil || !strings.Contains(err.Error(), "partition 1 was added") {
		t.Errorf("%v", err)
	}
}
