package dlq

import (
	"slices"
	"time"

	"projector/projection/event"
)

// Filter chooses dead letters by what they carry. An empty field chooses all.
type Filter struct {
	Classes       []event.Class
	Projection    string
	Group         string
	Account       string
	Since, Until  time.Time // of FailedAt, both included
	Partitions    []int32   // of the source topic
	Offsets       []int64
	DLQPartitions []int32
	DLQOffsets    []int64
}

// Matches reports whether the entry is chosen.
func (f *Filter) Matches(e *Entry) bool {
	return among(f.Classes, e.Class) &&
		isOr(f.Projection, e.Projection) && isOr(f.Group, e.Group) && isOr(f.Account, e.AccountID) &&
		(f.Since.IsZero() || !e.FailedAt.Before(f.Since)) &&
		(f.Until.IsZero() || !e.FailedAt.After(f.Until)) &&
		among(f.Partitions, e.Partition) && among(f.Offsets, e.Offset) &&
		among(f.DLQPartitions, e.DLQPartition) && among(f.DLQOffsets, e.DLQOffset)
}

func isOr(chosen, value string) bool { return chosen == "" || chosen == value }

func among[T comparable](chosen []T, value T) bool {
	return len(chosen) == 0 || slices.Contains(chosen, value)
}
