package dlq

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"projector/errclass"
)

// errNotAnswered is why the offsets of a partition are not known that its leader was asked
// for and has not named.
var errNotAnswered = errors.New("the answer does not name the partition")

// PartitionError says why one partition of a topic cannot be read. It says nothing about
// the others.
type PartitionError struct {
	Topic     string
	Partition int32
	Err       error

	leader   int32   // -1: none, or not known
	replicas []int32 // that may lead the partition; none when they are not known
}

var _ errclass.Describer = (*PartitionError)(nil)

// unreadable says why a partition cannot be read, and who may help.
func (r *Reader) unreadable(known kadm.PartitionDetail, partition int32, err error) *PartitionError {
	e := &PartitionError{Topic: r.topic, Partition: partition, Err: err, leader: known.Leader, replicas: known.ISR}
	if known.Err != nil {
		e.leader = -1
	}
	if len(e.replicas) == 0 {
		e.replicas = known.Replicas
	}
	return e
}

// Error implements error.
func (e *PartitionError) Error() string {
	return fmt.Sprintf("partition %d of topic %s: %s", e.Partition, e.Topic, e.Reason())
}

// Unwrap returns the cause.
func (e *PartitionError) Unwrap() error { return e.Err }

// SafeText implements errclass.Describer.
func (e *PartitionError) SafeText() string { return e.Error() }

// Reason is why the partition cannot be read and what to do about it, without its number:
// partitions that one broker leads have the same.
func (e *PartitionError) Reason() string {
	why := errclass.Safe(e.Err)
	switch {
	case errors.Is(e.Err, kerr.LeaderNotAvailable):
		return kerr.LeaderNotAvailable.Message + ": no broker leads it; bring back " + brokers(e.replicas)
	case e.leader < 0 || !leaderless(e.Err) && !errors.Is(e.Err, context.DeadlineExceeded):
		return why
	default:
		return fmt.Sprintf("%s; broker %d leads it: bring that back if it is away", why, e.leader)
	}
}

// brokers names those of which one is needed.
func brokers(ids []int32) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = strconv.Itoa(int(id))
	}
	switch len(ids) {
	case 0:
		return "a broker that has a replica of it"
	case 1:
		return "broker " + names[0]
	default:
		return "one of the brokers " + strings.Join(names, ", ")
	}
}
