package telemetry

import "time"

// Told is what Metrics were told that the status page shows.
type Told struct {
	Records    Counts
	ProgressAt *time.Time // nil before the first durable batch
	InboxRows  *int64     // nil until they were counted
}

// Told answers without gathering the metrics.
func (m *Metrics) Told() Told {
	t := Told{Records: m.partitions.counts()}
	if ms := m.progressAt.Load(); ms > 0 {
		at := time.UnixMilli(ms)
		t.ProgressAt = &at
	}
	if n := m.inbox.Load(); n > 0 {
		n--
		t.InboxRows = &n
	}
	return t
}

func (m *partitionMetrics) counts() Counts {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all
}

func (c *Counts) add(outcome string, n int) {
	if n < 0 {
		return
	}
	switch outcome {
	case OutcomeApplied:
		c.Applied += int64(n)
	case OutcomeDuplicate:
		c.Duplicate += int64(n)
	case OutcomeIgnored:
		c.Ignored += int64(n)
	case OutcomeDeadLettered:
		c.DeadLettered += int64(n)
	}
}
