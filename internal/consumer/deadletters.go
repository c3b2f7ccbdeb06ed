package consumer

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"projector/projection"
	"projector/projection/event"
)

const (
	// tellDeadLettersEvery is how often the log tells of the dead letters of a class, at most.
	tellDeadLettersEvery = time.Minute
	// lettersEvery is how often it is looked whether there are any to be told of.
	lettersEvery = 5 * time.Second
)

// deadLetterLog tells of dead letters: a line a class and minute, with how many there were
// in all partitions since the line before. Its zero value is ready for use.
type deadLetterLog struct {
	mu      sync.Mutex
	classes map[event.Class]*untoldLetters
}

// untoldLetters are those of a class that the log has not told of.
type untoldLetters struct {
	n    int
	last projection.RecordRef
	why  string    // of the last
	told time.Time // zero: never
}

// add takes note of dead letters, and tells of a class that was not told of lately.
func (l *deadLetterLog) add(log *slog.Logger, letters []projection.DeadLetter, now time.Time) {
	if len(letters) == 0 {
		return
	}
	l.mu.Lock()
	for i := range letters {
		d := &letters[i]
		if l.classes == nil {
			l.classes = map[event.Class]*untoldLetters{}
		}
		u := l.classes[d.Class]
		if u == nil {
			u = &untoldLetters{}
			l.classes[d.Class] = u
		}
		u.n++
		u.last, u.why = d.Record.Ref(), d.Message
	}
	l.mu.Unlock()
	l.tell(log, now, tellDeadLettersEvery)
}

// tell tells of the classes that were told of so long ago.
func (l *deadLetterLog) tell(log *slog.Logger, now time.Time, ago time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, class := range event.Classes() {
		u := l.classes[class]
		if u == nil || u.n == 0 || now.Sub(u.told) < ago {
			continue
		}
		log.Warn("records dead-lettered", "class", string(class), "records", u.n, "reason", u.why,
			slog.Group("last", "topic", u.last.Topic, "partition", u.last.Partition, "offset", u.last.Offset))
		u.n, u.told = 0, now
	}
}

// tellDeadLetters tells of the dead letters that came since a line about their class, and
// in the end of all.
func (c *Consumer) tellDeadLetters(ctx context.Context) {
	every(ctx, lettersEvery, lettersEvery, func(context.Context) { c.letters.tell(c.cfg.Log, time.Now(), tellDeadLettersEvery) })
}
