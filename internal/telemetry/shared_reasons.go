package telemetry

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// PartitionReason is the reason why a partition does not continue.
type PartitionReason struct {
	Partition int32
	Reason    string
	Since     time.Time // may be zero
}

// SharedReason is a reason for which several partitions do not continue.
type SharedReason struct {
	Partitions []int32 // sorted
	Reason     string
	Since      time.Time // the earliest time of the partitions
}

// ShareReasons groups the partitions with the same reason, in the order of the first partition of
// each group. Reasons count as the same if they differ only in the partition number in their
// command.
func ShareReasons(list []PartitionReason) []SharedReason {
	var shared []SharedReason
	index := map[string]int{}
	for _, p := range list {
		general := p.general()
		i, known := index[general]
		if !known {
			index[general] = len(shared)
			shared = append(shared, SharedReason{[]int32{p.Partition}, p.Reason, p.Since})
			continue
		}
		s := &shared[i]
		s.Partitions, s.Reason = append(s.Partitions, p.Partition), general
		if p.Since.Before(s.Since) {
			s.Since = p.Since
		}
	}
	for i := range shared {
		slices.Sort(shared[i].Partitions)
	}
	return shared
}

// general returns the reason with N instead of the partition number in its command.
func (p PartitionReason) general() string {
	return strings.ReplaceAll(p.Reason, fmt.Sprintf("--partition=%d ", p.Partition), "--partition=N ")
}

// Heading returns the names of the partitions, as "partition 3" or "partitions 0-2, 5".
func (s SharedReason) Heading() string { return s.heading("") }

func (s SharedReason) heading(prefix string) string {
	if len(s.Partitions) == 1 {
		return fmt.Sprintf("partition %s%d", prefix, s.Partitions[0])
	}
	return "partitions " + prefix + ranges(s.Partitions)
}

// ranges formats sorted numbers as "0-2, 5".
func ranges(numbers []int32) string {
	var parts []string
	for i := 0; i < len(numbers); {
		last := i
		for last+1 < len(numbers) && numbers[last+1] == numbers[last]+1 {
			last++
		}
		part := strconv.Itoa(int(numbers[i]))
		if last > i {
			part += fmt.Sprintf("-%d", numbers[last])
		}
		parts = append(parts, part)
		i = last + 1
	}
	return strings.Join(parts, ", ")
}

// partitionCondition matches a condition such as "partition account-events/3 leader". It captures
// the topic, the partition and the suffix.
var partitionCondition = regexp.MustCompile(`^partition (.+/)(\d+)( [a-z ]+)?$`)

// conditions is the key of a group of conditions. The conditions of a group have the same topic and
// suffix, and differ only in the partition.
type conditions struct{ topic, suffix string }

// shareReasons returns one reason for all partitions of a topic that have the same reason, sorted
// by condition.
func shareReasons(reasons []Reason) []Reason {
	var all []Reason
	groups := map[conditions][]PartitionReason{}
	for _, r := range reasons {
		found := partitionCondition.FindStringSubmatch(r.Condition)
		if found == nil {
			all = append(all, r)
			continue
		}
		number, err := strconv.ParseInt(found[2], 10, 32)
		if err != nil {
			all = append(all, r)
			continue
		}
		group := conditions{found[1], found[3]}
		groups[group] = append(groups[group], PartitionReason{int32(number), r.Reason, r.Since})
	}
	for group, list := range groups {
		for _, shared := range ShareReasons(list) {
			all = append(all, Reason{Condition: shared.heading(group.topic) + group.suffix, Reason: shared.Reason, Since: shared.Since})
		}
	}
	slices.SortFunc(all, byCondition)
	return all
}
