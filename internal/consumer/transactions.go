package consumer

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"projector/internal/pace"
)

const (
	// transactionsEvery is the interval at which the ends of the logs are compared with their last
	// stable offsets.
	transactionsEvery = 30 * time.Second
	// heldAfter is how long a transaction may hold records back before this is reported. Producers
	// usually end a transaction within a minute.
	heldAfter = 5 * time.Minute
	// transactionCondition is the suffix in the name of the warning about such a transaction.
	transactionCondition = " transaction"
)

// held describes the records that a transaction holds back. Brokers do not send the records of an
// open transaction, and no later record of the partition, to a consumer of committed records.
type held struct {
	from  int64     // last stable offset
	since time.Time // when the log was first seen to end after this offset; zero if nothing is held back
}

// seen returns the state after a broker has reported the last stable offset and the end of a log.
func (h held) seen(stable, end int64, now time.Time) held {
	switch {
	case end <= stable:
		return held{}
	case h.since.IsZero() || h.from != stable:
		return held{stable, now}
	}
	return h
}

// long reports whether records are held back for so long that a person has to know it.
func (h held) long(now time.Time) bool { return !h.since.IsZero() && now.Sub(h.since) >= heldAfter }

// watchTransactions reports transactions that stay open, for example because their producer is gone
// and no coordinator ends them. Records after the last stable offset are not counted as lag, so
// nothing else would show that the partition does not continue.
func (c *Consumer) watchTransactions(ctx context.Context) {
	pace.Every(ctx, transactionsEvery, watchWithin, func(ctx context.Context) {
		assigned := c.assignment()
		if len(assigned) == 0 {
			return
		}
		// The ends come first. Otherwise, a record that arrives between the two answers would look
		// like one of an open transaction. An error leaves the partition as it was.
		ends, _ := c.adm.ListEndOffsets(ctx, c.cfg.Topic)
		stable, _ := c.adm.ListCommittedOffsets(ctx, c.cfg.Topic)
		for _, p := range assigned {
			from, known := stable.Lookup(c.cfg.Topic, p)
			end, also := ends.Lookup(c.cfg.Topic, p)
			if w := c.worker(p); w != nil && known && also && from.Err == nil && end.Err == nil {
				w.noteHeld(from.Offset, end.Offset, time.Now())
			}
		}
	})
}

// noteHeld stores what a transaction holds back. If it holds it back for long, noteHeld warns, and
// the records count as lag from then on.
func (w *worker) noteHeld(stable, end int64, now time.Time) {
	before := w.held
	w.held = before.seen(stable, end, now)
	condition := w.c.condition(w.partition) + transactionCondition
	if !w.held.long(now) {
		w.status.held.Store(0)
		if before.long(now) {
			w.c.cfg.Health.OK(condition)
			w.log.Info("the transaction that held records back has ended", slog.Int64("offset", before.from))
		}
		return
	}
	if w.status.held.Swap(end) == 0 {
		w.log.Warn("a transaction that stays open holds records back", slog.Int64("offset", stable), slog.Int64("end", end))
	}
	w.c.whileOwned(w, func() {
		w.c.cfg.Health.Warn(condition, fmt.Sprintf("offsets %d to %d cannot be read yet, because a transaction at %[1]d has been open for more than %[3]s. "+
			"See the runbook, \"open transaction\"", stable, end-1, heldAfter))
	})
}
