package telemetry

import (
	"cmp"
	"slices"
)

const (
	// partitionsAtOnce is how many partitions one table shows without more ado.
	partitionsAtOnce = 32
	// partitionsFirst is how many of more than that are shown before the rest.
	partitionsFirst = 12
)

// view is what the page shows beside the document.
type view struct {
	statusDocument
	States []stateCount      // the states there are, the most urgent first
	First  []PartitionStatus // of very many partitions, those to look at first
}

// stateCount is how many partitions are in a state.
type stateCount struct {
	State State
	Count int
}

// labelled are partitions under a heading of the page, by its id.
type labelled struct {
	Label      string
	Partitions []PartitionStatus
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

func viewOf(doc statusDocument) view {
	v := view{statusDocument: doc}
	counts := map[State]int{}
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

// foremost are the partitions in trouble and, behind them, those furthest behind.
func foremost(all []PartitionStatus) []PartitionStatus {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b PartitionStatus) int {
		return cmp.Or(
			min(urgency(a.State), urgency(StateFlowing))-min(urgency(b.State), urgency(StateFlowing)),
			cmp.Compare(value(b.LagSeconds), value(a.LagSeconds)),
			cmp.Compare(value(b.LagRecords), value(a.LagRecords)),
		)
	})
	return sorted[:min(partitionsFirst, len(sorted))]
}

// urgency orders states: the lower, the sooner somebody should look. An unknown
// state comes first.
func urgency(s State) int {
	return slices.Index([]State{StateStopped, StateRetrying, StateStarting, StateFlowing, StatePaused, StateIdle}, s)
}

func value[N int64 | float64](p *N) N {
	if p == nil {
		return -1
	}
	return *p
}
