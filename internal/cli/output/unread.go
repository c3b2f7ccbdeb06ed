package output

import (
	"fmt"
	"slices"

	"projector/errclass"
	"projector/internal/telemetry"
	"projector/internal/topic"
)

// Unread lists the partitions of a topic that could not be read. Other partitions may have been
// read.
type Unread struct {
	Topic string
	Lost  []*topic.PartitionError
}

// Add adds a partition if it was not added before.
func (u *Unread) Add(lost *topic.PartitionError) {
	known := slices.ContainsFunc(u.Lost, func(e *topic.PartitionError) bool { return e.Partition == lost.Partition })
	if !known {
		u.Lost = append(u.Lost, lost)
	}
}

// Explain prints why partitions could not be read, with one line for each reason. It returns an
// error, or nil if all partitions were read.
func (u *Unread) Explain(std *Streams) error {
	if len(u.Lost) == 0 {
		return nil
	}
	var (
		reasons []telemetry.PartitionReason
		all     telemetry.SharedReason
	)
	for _, e := range u.Lost {
		all.Partitions = append(all.Partitions, e.Partition)
		reasons = append(reasons, telemetry.PartitionReason{Partition: e.Partition, Reason: e.Reason()})
	}
	slices.Sort(all.Partitions)
	for _, shared := range telemetry.ShareReasons(reasons) {
		std.Notef("%s of topic %s: %s\n", shared.Heading(), u.Topic, shared.Reason)
	}
	return errclass.Text(fmt.Sprintf("the result is incomplete: %s of topic %s could not be read", all.Heading(), u.Topic))
}
