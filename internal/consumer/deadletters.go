package consumer

import (
	"context"
	"log/slog"
	"time"

	"projector/internal/retry"
	"projector/projection"
	"projector/projection/event"
)

const (
	// deadLetterPause is the time between two log lines about dead letters of a class.
	deadLetterPause = time.Minute
	// deadLettersEvery is the time between two checks whether a line is due.
	deadLettersEvery = 5 * time.Second
)

// deadLetterLog writes at most one line per class and minute. The line has the number of dead
// letters in all partitions since the line before.
type deadLetterLog struct {
	log   *slog.Logger
	lines *retry.Lines
}

func newDeadLetterLog(log *slog.Logger, now func() time.Time) deadLetterLog {
	return deadLetterLog{log, retry.NewLines(now, deadLetterPause, deadLetterPause)}
}

// add notes dead letters.
func (l *deadLetterLog) add(letters []projection.DeadLetter) {
	var counts map[event.Class]int
	for i := range letters {
		if counts == nil {
			counts = map[event.Class]int{}
		}
		counts[letters[i].Class]++
	}
	for i := len(letters) - 1; i >= 0 && len(counts) > 0; i-- { // the last of each class
		d := &letters[i]
		n := counts[d.Class]
		delete(counts, d.Class)
		class, last, why := string(d.Class), d.Record.Ref(), d.Message // not d itself, because the line would then keep the batch in memory
		l.lines.Count(class, n, func(n int) {
			l.log.Warn("records dead-lettered", "class", class, "records", n, "reason", why,
				slog.Group("last", "topic", last.Topic, "partition", last.Partition, "offset", last.Offset))
		})
	}
}

// logDeadLetters writes the lines that become due, until ctx ends.
func (c *Consumer) logDeadLetters(ctx context.Context) {
	every(ctx, deadLettersEvery, deadLettersEvery, func(context.Context) { c.letters.lines.Flush() })
}
