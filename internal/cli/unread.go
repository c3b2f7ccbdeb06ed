package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"projector/dlq"
)

// unread are the partitions of a topic that could not be read, while others could.
type unread struct {
	topic string
	lost  []*dlq.PartitionError
}

// add adds a partition, once.
func (u *unread) add(lost *dlq.PartitionError) {
	known := slices.ContainsFunc(u.lost, func(e *dlq.PartitionError) bool { return e.Partition == lost.Partition })
	if !known {
		u.lost = append(u.lost, lost)
	}
}

// incompleteError ends a command that has reported what there is of the other partitions.
type incompleteError struct{ refusal }

// explain says why each partition could not be read, those with the same reason in one
// line, and returns the error to end with; nil when all were read.
func (u *unread) explain(w io.Writer) error {
	if len(u.lost) == 0 {
		return nil
	}
	var reasons []string
	by := map[string][]int32{}
	for _, e := range u.lost {
		reason := e.Reason()
		if by[reason] == nil {
			reasons = append(reasons, reason)
		}
		by[reason] = append(by[reason], e.Partition)
	}
	for _, reason := range reasons {
		_, _ = fmt.Fprintf(w, "%s of topic %s: %s\n", partitionsText(by[reason]), u.topic, reason)
	}
	return incompleteError{refusal{fmt.Sprintf("the result is incomplete: %s of topic %s could not be read", u.names(), u.topic)}}
}

// names names the partitions.
func (u *unread) names() string {
	numbers := make([]int32, len(u.lost))
	for i, e := range u.lost {
		numbers[i] = e.Partition
	}
	return partitionsText(numbers)
}

// refuse says why nothing is done to a part of what was chosen, and how to choose that part.
// Each dead letter would be dealt with rightly by itself. But one that is not seen may come
// before it (of two events for one version the first counts), and whoever is told that all
// is done does not look again.
func (s *scan) refuse(ctx context.Context, lost *dlq.PartitionError) error {
	done := "nothing was changed"
	if s.changed {
		done = "only what is listed was changed"
	}
	text := fmt.Sprintf("%s. The selection is incomplete without it, so %s", lost.SafeText(), done)
	if others := s.readable(ctx, lost.Partition); len(others) > 0 {
		text += "; to go on with the others: --dlq-partition " + numbersText(others)
	}
	return refusal{text}
}

// readable are the partitions that are chosen and can be read.
func (s *scan) readable(ctx context.Context, without int32) []int32 {
	all, _, err := s.reader.Extents(ctx)
	if err != nil {
		return nil
	}
	var others []int32
	for _, e := range all.Partitions {
		chosen := len(s.filter.DLQPartitions) == 0 || slices.Contains(s.filter.DLQPartitions, e.Partition)
		if chosen && e.Err == nil && e.Partition != without {
			others = append(others, e.Partition)
		}
	}
	return others
}

func partitionsText(numbers []int32) string {
	if len(numbers) == 1 {
		return "partition " + numbersText(numbers)
	}
	return "partitions " + numbersText(numbers)
}

// numbersText is a list as flags take it.
func numbersText(numbers []int32) string {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.Itoa(int(n))
	}
	return strings.Join(texts, ",")
}
