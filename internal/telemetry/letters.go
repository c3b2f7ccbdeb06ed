package telemetry

import (
	"maps"
	"sync"
	"time"

	"projector/projection/event"
)

// lettersKept is how many dead letters one list of the status page can show.
const lettersKept = 20

// LastDeadLetters stores the last published dead letters, and separately the last ones that are not
// of class version_gap. A LastDeadLetters is safe for concurrent use.
type LastDeadLetters struct {
	mu           sync.Mutex
	byClass      map[string]int64
	last, causes letters
}

// letters is a ring with the newest dead letters.
type letters struct {
	total int
	kept  [lettersKept]DeadLetter // the newest is at index (total-1) % lettersKept
}

func (l *letters) add(d DeadLetter) {
	l.kept[l.total%lettersKept] = d
	l.total++
}

// newest returns the stored dead letters, with the newest first.
func (l *letters) newest() []DeadLetter {
	list := []DeadLetter{} // so that JSON has an empty list and not null
	for i := l.total - 1; i >= max(0, l.total-lettersKept); i-- {
		list = append(list, l.kept[i%lettersKept])
	}
	return list
}

// DeadLetter has the partition and offset of a dead letter in the DLQ topic. It also has the topic,
// partition and offset of the original record.
type DeadLetter struct {
	At           time.Time `json:"at"` // time at which the record was dead-lettered
	Class        string    `json:"class"`
	DLQPartition int32     `json:"dlq_partition"`
	DLQOffset    int64     `json:"dlq_offset"`
	Topic        string    `json:"topic"` // topic, partition and offset of the original record
	Partition    int32     `json:"partition"`
	Offset       int64     `json:"offset"`
}

// DeadLettersStatus counts the dead letters that were published since the start of the program.
// Dead letters that were resolved later are included.
type DeadLettersStatus struct {
	Total   int64            `json:"total"`
	ByClass map[string]int64 `json:"by_class"`
	Causes  []DeadLetter     `json:"causes"` // all except version_gap; the newest first, at most 20
	Recent  []DeadLetter     `json:"recent"` // the newest first, at most 20
}

// NewLastDeadLetters returns an empty LastDeadLetters.
func NewLastDeadLetters() *LastDeadLetters { return &LastDeadLetters{byClass: map[string]int64{}} }

// Published stores and counts one dead letter. It does not block.
func (l *LastDeadLetters) Published(d DeadLetter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last.add(d)
	if d.Class != string(event.VersionGap) {
		l.causes.add(d)
	}
	l.byClass[d.Class]++
}

func (l *LastDeadLetters) status() DeadLettersStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	return DeadLettersStatus{Total: int64(l.last.total), ByClass: maps.Clone(l.byClass), Causes: l.causes.newest(), Recent: l.last.newest()}
}
