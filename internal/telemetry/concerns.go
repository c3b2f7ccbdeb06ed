package telemetry

import (
	"fmt"
	"regexp"

	"projector/projection"
)

// level is the overall state of the instance, as the status page shows it.
type level string

const (
	levelGood level = "good" // no action is needed
	levelWarn level = "warn" // ready, but a person should check something
	levelBad  level = "bad"  // not ready
)

// These thresholds equal the thresholds of the alerts in deploy/monitoring. A test compares them
// with the alerts.
const (
	gapOldSeconds        = 3600.0  // threshold of the alert ProjectorGapOld
	retentionNearSeconds = 86400.0 // threshold of the alert ProjectorRetentionNear
)

// concern is a problem that a person should check although the instance is ready.
type concern struct {
	Text    string
	Section string // anchor of the concern's heading in the runbook
}

// concernsOf returns the concerns of an instance, the most urgent first.
func concernsOf(s *Status) []concern {
	var all []concern
	near, states := 0, map[projection.State]int{}
	for i := range s.Partitions {
		p := &s.Partitions[i]
		states[p.State]++
		if p.MarginSeconds != nil && *p.MarginSeconds < retentionNearSeconds && value(p.MarginRecords) < value(p.LagRecords) {
			near++
		}
	}
	if near > 0 {
		all = append(all, concern{partitionsOf(near, len(s.Partitions)) + ": retention is about to remove unread records", "projectorretentionnear"})
	}
	for _, state := range []projection.State{projection.StateStopped, projection.StateBreakerOpen, projection.StateRetrying, projection.StatePaused} {
		if n := states[state]; n > 0 {
			all = append(all, concern{partitionsOf(n, len(s.Partitions)) + ": " + string(state), stateSection(state)})
		}
	}
	if s.Parked != nil && s.Parked.OldestGapSeconds > gapOldSeconds {
		all = append(all, concern{fmt.Sprintf("Accounts wait for an event, one of them for %s", formatSeconds(s.Parked.OldestGapSeconds)), "projectorgapold"})
	}
	return all
}

// warned converts the instance's warnings (see Health.Warn) to concerns.
func warned(warnings []Reason) []concern {
	var all []concern
	for _, w := range warnings {
		all = append(all, concern{w.Reason, w.Section()})
	}
	return all
}

func partitionsOf(n, all int) string {
	if n == all {
		return fmt.Sprintf("All partitions (%d)", all)
	}
	return fmt.Sprintf("%d of %d partitions", n, all)
}

// stateSection returns the anchor of the runbook's section about a partition state.
func stateSection(s projection.State) string {
	switch s {
	case projection.StateStopped, projection.StateStarting:
		return "unready"
	case projection.StateBreakerOpen:
		return "breaker-open"
	case projection.StateRetrying:
		return "projectorretrying"
	case projection.StatePaused:
		return "projectorpausedlong"
	case projection.StateFlowing, projection.StateIdle, projection.StateThrottled:
		return "projectorlaghigh"
	}
	return "unready"
}

var named = regexp.MustCompile(`See the runbook, "([^"]+)"`)

// reasonSection returns the anchor of the runbook's section that the reason's text names. If the
// text names no section, it returns fallback.
func reasonSection(reason, fallback string) string {
	if found := named.FindStringSubmatch(reason); found != nil {
		return anchor(found[1])
	}
	return fallback
}

// Section returns the anchor of the runbook's section about the partition's state.
func (p PartitionStatus) Section() string { return reasonSection(p.Reason, stateSection(p.State)) }

// Section returns the anchor of the runbook's section about the reason.
func (r Reason) Section() string { return reasonSection(r.Reason, "unready") }
