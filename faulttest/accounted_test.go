//go:build faults

package faulttest

import (
	"fmt"

	"projector/internal/testbank"
)

// The method accounted expects the replicas' counters to equal the oracle's outcomes for each
// partition. The outcomes (applied, duplicate, ignored, dead-lettered) must add up to the number of
// records in the partition.
func (s *scene) accounted(want map[int32]*testbank.Outcomes) {
	s.t.Helper()
	ends := s.ends()
	s.await("every record is counted once", func() string {
		got := s.counted()
		for p, end := range ends {
			o := got[p]
			if all := o.Applied + o.Duplicate + o.Ignored + o.DeadLettered; int64(all) != end {
				return fmt.Sprintf("partition %d: %d counted of %d: %+v", p, all, end, o)
			}
		}
		for p, o := range want {
			if got[p] != *o {
				return fmt.Sprintf("partition %d: %+v, want %+v", p, got[p], *o)
			}
		}
		return ""
	})
}

// The method counted adds up the metrics of all replicas for each partition.
func (s *scene) counted() map[int32]testbank.Outcomes {
	s.t.Helper()
	total := map[int32]testbank.Outcomes{}
	for _, r := range s.replicas {
		samples := r.Metrics()
		for p := range s.setting.partitions {
			of := func(outcome string) int {
				return int(samples[fmt.Sprintf(`projector_records_total{outcome=%q,partition="%d",projection=%q,topic=%q}`,
					outcome, p, s.reader.Projection, s.reader.Topic)])
			}
			o := total[p]
			o.Applied += of("applied")
			o.Duplicate += of("duplicate")
			o.Ignored += of("ignored")
			o.DeadLettered += of("dead_lettered")
			total[p] = o
		}
	}
	return total
}
