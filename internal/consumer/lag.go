package consumer

import (
	"context"
	"log/slog"
	"time"

	"projector/projection"
)

// watchLag asks the brokers for the ends of the partitions.
func (c *Consumer) watchLag(ctx context.Context) {
	every(ctx, lagEvery, lagEvery, func(ctx context.Context) {
		// With an error, what is missing stays as it was; watchKafka tells.
		ends, _ := c.adm.ListCommittedOffsets(ctx, c.cfg.Topic)
		for _, p := range c.assignment() {
			w := c.worker(p)
			end, known := ends.Lookup(c.cfg.Topic, p)
			if w == nil || !known || end.Err != nil {
				continue
			}
			w.status.end.Store(end.Offset)
			if w.status.fence.Load() == 0 {
				if info, err := c.partitionInfo(ctx, p); err == nil {
					w.status.first.Store(info.start)
				}
			}
			w.reportLag()
		}
	})
}

// claimed takes note of the position.
func (w *worker) claimed(pos projection.Position) {
	w.status.claimed(pos)
	w.reportLag()
}

// reportLag sets the gauges, once enough is known.
func (w *worker) reportLag() {
	if records, age, known := w.lag(time.Now()); known {
		w.c.cfg.Observer.Lag(w.c.cfg.Topic, w.partition, records, age.Seconds())
	}
}

// lag is how many records the partition is behind, all there are when it has no
// position, and the age of the oldest record that is fetched and not durable; when none
// is, for how long the partition has been seen behind. The status page, the metric and
// the command show the same.
func (w *worker) lag(now time.Time) (records int64, age time.Duration, known bool) {
	s := &w.status
	end, from := s.end.Load(), s.from()
	if end < 0 || from < 0 {
		return 0, 0, false
	}
	if records = end - from; records <= 0 {
		s.lagging.Store(0)
		return 0, 0, true
	}
	s.lagging.CompareAndSwap(0, now.UnixMilli())
	oldest := s.oldest.Load()
	if oldest == 0 {
		oldest = w.queue.oldest()
	}
	if oldest <= 0 || oldest > now.UnixMilli() { // no record, or one whose time says nothing
		oldest = s.lagging.Load()
	}
	return records, max(0, now.Sub(time.UnixMilli(oldest))), true
}

// logRewind says when a claim has taken the position back, or found it taken back, and
// why: records are read again that were durable before.
func (w *worker) logRewind(kafka int64, found projection.Stood, pos projection.Position) {
	from, reason := projection.NoOffset, ""
	switch known := w.status.position.Load(); {
	case w.status.fence.Load() > 0 && found.Next < known:
		from, reason = known, "the stored position is behind what was durable: the database was restored, or the position was set back"
	case kafka > found.Next && found.Fence == 0:
		from, reason = kafka, "the database has no position, although Kafka has a committed offset: it is another one, or was restored"
	case kafka > found.Next:
		from, reason = kafka, "the stored position is behind Kafka's committed offset: the database was restored, or the position was set back"
	case pos.Next < found.Next:
		from, reason = found.Next, "Kafka's committed offset is lower than the stored position"
	}
	if pos.Next < from {
		w.log.Warn("the position was taken back", slog.Int64("from", from), slog.Int64("to", pos.Next), slog.String("reason", reason))
	}
}
