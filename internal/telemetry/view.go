package telemetry

import (
	"cmp"
	"slices"

	"projector/projection"
	"projector/projection/event"
)

const (
	// partitionsAtOnce is how many partitions one table shows.
	partitionsAtOnce = 32
	// partitionsFirst is how many of more than that are shown before the rest.
	partitionsFirst = 12
)

// view is the document as the page shows it.
type view struct {
	statusDocument
	Level    level
	Concerns []concern         // only of an instance that is ready: else the reasons are there
	Shared   []Reason          // why it is not ready, one for all partitions with the same reason
	States   []stateCount      // the states there are, the most urgent first
	First    []PartitionStatus // those to look at first; empty unless there are more than partitionsAtOnce
}

// stateCount is how many partitions are in a state.
type stateCount struct {
	State projection.State
	Count int
}

// Section is where the runbook explains the state, as an anchor.
func (c stateCount) Section() string { return stateSection(c.State) }

// labelled are partitions under a heading of the page, by its id.
type labelled struct {
	Label      string
	Partitions []PartitionStatus
}

// lettered are dead letters under a heading of the page, by its id.
type lettered struct {
	Label   string
	Letters []DeadLetter
}

// classCount is how many dead letters are of a class.
type classCount struct {
	Class string
	Count int64
}

// classCounts are sorted, the most frequent first.
func classCounts(byClass map[string]int64) []classCount {
	counts := make([]classCount, 0, len(byClass))
	for class, n := range byClass {
		counts = append(counts, classCount{class, n})
	}
	slices.SortFunc(counts, func(a, b classCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Class, b.Class))
	})
	return counts
}

// causesFirst moves the class of the events that only wait for others to the end.
func causesFirst(counts []classCount) []classCount {
	isGap := func(c classCount) bool { return c.Class == string(event.VersionGap) }
	if i := slices.IndexFunc(counts, isGap); i >= 0 {
		counts = append(slices.Delete(slices.Clone(counts), i, i+1), counts[i])
	}
	return counts
}

func viewOf(doc statusDocument) view {
	v := view{statusDocument: doc, Shared: shareReasons(doc.Reasons), Level: levelBad}
	if doc.Ready {
		v.Level, v.Concerns = levelGood, append(concernsOf(&doc.Status), warned(doc.Warnings)...)
		if len(v.Concerns) > 0 {
			v.Level = levelWarn
		}
	}
	counts := map[projection.State]int{}
	for i := range doc.Partitions {
		counts[doc.Partitions[i].State]++
	}
	for state, n := range counts {
		v.States = append(v.States, stateCount{state, n})
	}
	slices.SortFunc(v.States, func(a, b stateCount) int {
		return cmp.Or(urgency(a.State)-urgency(b.State), cmp.Compare(a.State, b.State))
	})
	if len(doc.Partitions) > partitionsAtOnce {
		v.First = foremost(doc.Partitions)
	}
	return v
}

// foremost are the partitions in trouble, then those with the largest lag.
func foremost(all []PartitionStatus) []PartitionStatus {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b PartitionStatus) int {
		return cmp.Or(
			min(urgency(a.State), urgency(projection.StateFlowing))-min(urgency(b.State), urgency(projection.StateFlowing)),
			cmp.Compare(value(b.LagSeconds), value(a.LagSeconds)),
			cmp.Compare(value(b.LagRecords), value(a.LagRecords)),
		)
	})
	return sorted[:min(partitionsFirst, len(sorted))]
}

// urgency orders states: the lower, the sooner somebody should look. An unknown
// state comes first.
func urgency(s projection.State) int {
	return slices.Index([]projection.State{
		projection.StateStopped, projection.StateBreakerOpen, projection.StateRetrying, projection.StateStarting, projection.StatePaused, projection.StateFlowing, projection.StateThrottled, projection.StateIdle,
	}, s)
}

func value[N int64 | float64](p *N) N {
	if p == nil {
		return -1
	}
	return *p
}
