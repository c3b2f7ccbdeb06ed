package telemetry

import (
	"cmp"
	"slices"

	"projector/projection"
	"projector/projection/event"
)

const (
	// partitionsAtOnce is how many partitions the status page shows in one table.
	partitionsAtOnce = 32
	// partitionsFirst is how many partitions are shown first if there are more than
	// partitionsAtOnce.
	partitionsFirst = 12
)

type view struct {
	statusDocument
	Level    level
	Concerns []concern         // only if the instance is ready; else see Shared
	Shared   []Reason          // why the instance is not ready; partitions with the same reason share an entry
	States   []stateCount      // the existing states, with the most urgent first
	First    []PartitionStatus // the most urgent ones; empty if all fit into one table
}

type stateCount struct {
	State projection.State
	Count int
}

func (c stateCount) Section() string { return stateSection(c.State) }

// labelled is the data of the templates for a list of partitions or of dead letters. The field Label
// is the HTML id of the list's heading.
type labelled struct {
	Label string
	List  any
}

type classCount struct {
	Class string
	Count int64
}

// classCounts returns the counts, with the most frequent class first.
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

// causesFirst moves the class version_gap to the end, because the events of this class only wait
// for other events.
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

// foremost returns the most urgent partitions: those in trouble, then those with the largest lag.
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

// urgency returns a number for a state. A person should check a partition with a lower number
// first. An unknown state comes first.
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
