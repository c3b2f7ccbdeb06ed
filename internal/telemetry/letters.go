package telemetry

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// lettersKept is how many dead letters are remembered: what a person reads.
const lettersKept = 20

// Letters remembers the dead letters that were published last. It is safe for
// concurrent use.
type Letters struct {
	mu      sync.Mutex
	total   int64
	byClass map[string]int64
	last    [lettersKept]DeadLetter // a ring; the newest is at (total-1) % lettersKept
}

// DeadLetter is where a dead letter stands and where its record came from.
type DeadLetter struct {
	At           time.Time `json:"at"` // when it failed
	Class        string    `json:"class"`
	DLQPartition int32     `json:"dlq_partition"`
	DLQOffset    int64     `json:"dlq_offset"`
	Topic        string    `json:"topic"` // of the source, as the two that follow
	Partition    int32     `json:"partition"`
	Offset       int64     `json:"offset"`
}

// DeadLettersStatus is what was published since the start, also what has been
// resolved since.
type DeadLettersStatus struct {
	Total   int64            `json:"total"`
	ByClass map[string]int64 `json:"by_class"`
	Recent  []DeadLetter     `json:"recent"` // the newest first, at most 20
}

// NewLetters returns one that has seen nothing.
func NewLetters() *Letters { return &Letters{byClass: map[string]int64{}} }

// Published takes note of one dead letter. It does not wait.
func (l *Letters) Published(d DeadLetter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last[l.total%lettersKept] = d
	l.total++
	l.byClass[d.Class]++
}

func (l *Letters) status() DeadLettersStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := DeadLettersStatus{Total: l.total, ByClass: maps.Clone(l.byClass), Recent: []DeadLetter{}}
	for i := max(0, l.total-lettersKept); i < l.total; i++ {
		s.Recent = append(s.Recent, l.last[i%lettersKept])
	}
	slices.Reverse(s.Recent)
	return s
}
