package consumer

import (
	"context"
	"log/slog"
	"time"

	"projector/internal/pace"
	"projector/internal/retry"
	"projector/projection"
	"projector/projection/event"
)

const (
	// deadLetterPause is the minimum time between two log lines about dead letters of one class,
	// until the consumer ends.
	deadLetterPause = time.Minute
	// deadLettersEvery is the interval of the checks whether a line is due.
	deadLettersEvery = 5 * time.Second
)

// deadLetterLog writes at most one line per class and minute, and one more when the consumer ends.
// A line has the number of dead letters of all partitions since the last line of the class.
type deadLetterLog struct {
	log   *slog.Logger
	lines *retry.Lines
}

func newDeadLetterLog(log *slog.Logger) deadLetterLog {
	return deadLetterLog{log, retry.NewLines(deadLetterPause, deadLetterPause)}
}

func (l *deadLetterLog) add(letters []projection.DeadLetter) {
	var counts map[event.Class]int
	for i := range letters {
		if counts == nil {
			counts = map[event.Class]int{}
		}
		counts[letters[i].Class]++
	}
	// The loop runs backwards, so that the line has the last dead letter of each class.
	for i := len(letters) - 1; i >= 0 && len(counts) > 0; i-- {
		d := &letters[i]
		n := counts[d.Class]
		delete(counts, d.Class)
		// The closure must not refer to d, because d would keep the batch in memory.
		class, last, why := string(d.Class), d.Record.Ref(), d.Message
		l.lines.Count(class, n, func(n int) {
			l.log.Warn("records dead-lettered", "class", class, "records", n, "reason", why,
				slog.Group("last", "topic", last.Topic, "partition", last.Partition, "offset", last.Offset))
		})
	}
}

// logDeadLetters writes the lines that become due, until ctx ends.
func (c *Consumer) logDeadLetters(ctx context.Context) {
	pace.Every(ctx, deadLettersEvery, deadLettersEvery, func(context.Context) { c.letters.lines.Flush() })
}
