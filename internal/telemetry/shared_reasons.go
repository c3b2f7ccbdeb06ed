package telemetry

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// PartitionReason is why a partition does not go on.
type PartitionReason struct {
	Partition int32
	Reason    string
}

// SharedReason is why several partitions do not go on.
type SharedReason struct {
	Partitions []int32 // in order
	Reason     string
}

// ShareReasons puts partitions with the same reason together, in the order in which they
// came. A reason that names its own partition in a command is the same for another one.
func ShareReasons(list []PartitionReason) []SharedReason {
	var shared []SharedReason
	at := map[string]int{}
	for _, p := range list {
		same := ofAny(p)
		i, known := at[same]
		if !known {
			at[same] = len(shared)
			shared = append(shared, SharedReason{[]int32{p.Partition}, p.Reason})
			continue
		}
		shared[i].Partitions, shared[i].Reason = append(shared[i].Partitions, p.Partition), same
	}
	for i := range shared {
		slices.Sort(shared[i].Partitions)
	}
	return shared
}

// ofAny is the reason with N for the number of the partition in the command to type.
func ofAny(p PartitionReason) string {
	return strings.ReplaceAll(p.Reason, fmt.Sprintf("--partition=%d ", p.Partition), "--partition=N ")
}

// Heading names the partitions: "partition 3", "partitions 0-2, 5".
func (s SharedReason) Heading() string {
	if len(s.Partitions) == 1 {
		return fmt.Sprintf("partition %d", s.Partitions[0])
	}
	return "partitions " + ranges(s.Partitions)
}

// ranges writes sorted numbers as "0-2, 5".
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

// ofPartition finds topic and partition in a condition such as "partition account-events/3".
var ofPartition = regexp.MustCompile(`^partition (.+)/(\d+)( [a-z ]+)?$`)

// together are the reasons with one line for all partitions of a topic that have the same,
// sorted by condition. It began when the first of them began.
func together(reasons []Reason) []Reason {
	var all []Reason
	byTopic := map[string][]PartitionReason{}
	since := map[string]Reason{} // the first of a kind
	for _, r := range reasons {
		found := ofPartition.FindStringSubmatch(r.Condition)
		number, err := int64(0), error(nil)
		if found != nil {
			number, err = strconv.ParseInt(found[2], 10, 32)
		}
		if found == nil || err != nil {
			all = append(all, r)
			continue
		}
		kind := found[1] + "/\x00" + found[3]
		p := PartitionReason{int32(number), r.Reason}
		byTopic[kind] = append(byTopic[kind], p)
		if first, known := since[kind+ofAny(p)]; !known || r.Since.Before(first.Since) {
			since[kind+ofAny(p)] = r
		}
	}
	for kind, list := range byTopic {
		topic, what, _ := strings.Cut(kind, "\x00")
		for _, shared := range ShareReasons(list) {
			first := since[kind+ofAny(PartitionReason{shared.Partitions[0], shared.Reason})]
			name := "partition "
			if len(shared.Partitions) > 1 {
				name = "partitions "
			}
			all = append(all, Reason{Condition: name + topic + ranges(shared.Partitions) + what, Reason: shared.Reason, Since: first.Since})
		}
	}
	slices.SortFunc(all, func(a, b Reason) int { return cmp.Compare(a.Condition, b.Condition) })
	return all
}
