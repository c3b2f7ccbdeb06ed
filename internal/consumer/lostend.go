package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/pace"
	"projector/internal/session"
	"projector/projection"
)

// A log loses its end when a replica that lacks it becomes the leader (an unclean leader
// election), or when a broker comes back with an older disk. Its offsets are then given
// to other records. A position after the end would pass those, so the partition
// stops for every owner, and stays stopped until a person sets the position.

// logEnd is where a partition's log ends, as its leader says.
type logEnd struct {
	offset   int64 // after the last record
	epoch    int32 // the leader's; projection.NoEpoch: not known
	epochEnd int64 // after the last record of the position's leader epoch; projection.NoOffset: not known
}

// loss is what is known of a log that has lost its end.
type loss struct {
	at    int64  // up to where the log still is what was consumed; projection.NoOffset: not known
	found string // how it was found; empty: nothing is lost
}

// contradicts returns why a log that ends so cannot be the one that was consumed up to next.
func (e logEnd) contradicts(next projection.NextOffset) loss {
	switch {
	case e.epochEnd != projection.NoOffset && e.epochEnd < min(next.Offset, e.offset):
		return lostBehind(next.LeaderEpoch, e.epochEnd)
	case e.offset < next.Offset:
		return loss{e.offset, fmt.Sprintf("the log ends at %d", e.offset)}
	case e.behind(next):
		return loss{projection.NoOffset, fmt.Sprintf("the records up to there are of leader epoch %d, and the leader is of epoch %d",
			next.LeaderEpoch, e.epoch)}
	}
	return loss{at: projection.NoOffset}
}

// lostBehind is the loss of everything after the last record that is left of a leader epoch.
func lostBehind(epoch int32, end int64) loss {
	return loss{end, fmt.Sprintf("the records up to there are of leader epoch %d, which ends at %d", epoch, end)}
}

// behind reports whether the leader's epoch is earlier than that of what was consumed. Such
// a leader does not know yet that it was replaced, or has lost more than records.
func (e logEnd) behind(next projection.NextOffset) bool {
	return e.epoch != projection.NoEpoch && e.epoch < next.LeaderEpoch
}

// believed reports whether what contradicts a position is believed, some time after it was
// said first.
func (e logEnd) believed(next projection.NextOffset, after time.Duration) bool {
	return !e.behind(next) || after >= behindFor
}

const (
	// lostAsks is how often the brokers have to say that a log has lost its end before it
	// is believed, and lostPause the time in between: they may be about to change the leader.
	lostAsks  = 4
	lostPause = 300 * time.Millisecond
	// behindFor is how long an earlier leader is not believed: longer than the brokers take
	// to find out that one of them is dead, and to spread that.
	behindFor = 20 * time.Second
)

// lostEnd compares a position with the log.
func (w *worker) lostEnd(next projection.NextOffset, log partitionInfo) (lost loss, err error) {
	if next.Offset <= log.end && (next.LeaderEpoch == projection.NoEpoch || next.LeaderEpoch == log.epoch) {
		return lost, nil // an epoch that lasts ends where the log ends
	}
	began := time.Now()
	err = w.retry("kafka", "compare the position with the log", func(ctx context.Context) (err error) {
		lost, err = w.askForEnd(ctx, next, log, began)
		return w.c.explain(err)
	})
	return lost, err
}

// askForEnd asks until one answer is good, or all were bad. The first answer may be the one
// that is known already.
func (w *worker) askForEnd(ctx context.Context, next projection.NextOffset, log partitionInfo, began time.Time) (lost loss, err error) {
	for asked := range lostAsks {
		if asked > 0 && pace.Sleep(ctx, lostPause) != nil {
			return loss{}, context.Cause(ctx)
		}
		if asked > 0 || next.Offset > log.end {
			if log, err = w.c.partitionInfoSince(ctx, w.partition, time.Now()); err != nil {
				return loss{}, err
			}
		}
		end := logEnd{offset: log.end, epoch: log.epoch, epochEnd: projection.NoOffset}
		if next.LeaderEpoch != projection.NoEpoch {
			if end.epochEnd, err = w.c.epochEnd(ctx, w.partition, next.LeaderEpoch); err != nil {
				return loss{}, err
			}
		}
		if lost = end.contradicts(next); lost.found == "" {
			return lost, nil
		}
		if last := asked == lostAsks-1; last && !end.believed(next, time.Since(began)) {
			return loss{}, fmt.Errorf("%w: %s", kerr.UnknownLeaderEpoch, lost.found)
		}
	}
	return lost, nil
}

// stopForAll stops a partition whose log has lost its end, for every owner and until a
// person sets the position.
func (w *worker) stopForAll(position int64, lost loss) error {
	reason := fmt.Sprintf("the log has lost its end: the position is %d, and %s. It stays stopped until a person sets the position. "+
		"See the runbook, \"log lost its end\"", position, lost.found)
	err := w.retry("postgres", "stop the partition", func(ctx context.Context) error {
		return w.c.cfg.Database.Stop(ctx, w.partition, w.status.fence.Load(), lost.at, reason)
	})
	switch {
	case errors.Is(err, projection.ErrFenced):
		return session.ErrAgain
	case err != nil:
		return err
	}
	return w.suspend(projection.StateStopped, reason)
}

// brokenOff is why nothing follows the records of a partition that were fetched.
type brokenOff struct {
	reason     string
	outOfRange bool             // the log does not reach there: its start or its end is elsewhere
	loss       *kgo.ErrDataLoss // the log has lost its end, says the client
}

// breakOff is called by the poller when Kafka refuses to serve the partition from
// some offset on. What was fetched before it is still processed.
func (w *worker) breakOff(err error) {
	var (
		broken brokenOff
		large  *kgo.ErrDecompressTooLarge
	)
	switch {
	case errors.Is(err, kerr.OffsetOutOfRange):
		broken.outOfRange = true
	case errors.As(err, &broken.loss):
	case errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.InconsistentTopicID):
		broken.reason = "the topic was deleted, or deleted and created again. See the runbook, \"topic recreated\""
	case errors.As(err, &large):
		broken.reason = fmt.Sprintf("%s: offsets %d to %d. See the runbook, \"batch too large\"",
			batchTooLarge{w.c.cfg.Limits.BatchBytes}, large.Offset, large.NextOffset-1)
	default:
		return
	}
	w.queue.breakOff(&broken)
}

// stopAtBreak writes what lies before the break and stops the partition.
func (w *worker) stopAtBreak(broken *brokenOff) error {
	if err := w.flush(); err != nil {
		return err
	}
	switch {
	case broken.outOfRange:
		return w.stopOutOfRange()
	case broken.loss == nil:
		return w.halt(broken.reason)
	case w.session.Next().Offset <= broken.loss.ResetTo: // nothing that was consumed is lost
		return session.ErrAgain
	}
	return w.stopForAll(w.session.Next().Offset, lostBehind(broken.loss.ConsumedToEpoch, broken.loss.ResetTo))
}

// stopOutOfRange stops a partition whose log does not reach to where it was to be read.
// Producers may append beyond that at any time, so there is no waiting for a second answer.
func (w *worker) stopOutOfRange() error {
	var log partitionInfo
	err := w.retry("kafka", "read the partition's offsets", func(ctx context.Context) (err error) {
		log, err = w.c.partitionInfoSince(ctx, w.partition, time.Now())
		return w.c.explain(err)
	})
	switch {
	case err != nil:
		return err
	case !projection.SameTopic(log.id, w.topicID):
		return session.ErrAgain // the claim says so
	case w.session.Next().Offset < log.start:
		return w.halt(expired(w.session.Next().Offset, log.start))
	}
	end := logEnd{offset: log.end, epoch: log.epoch, epochEnd: projection.NoOffset}
	if w.session.Next().LeaderEpoch != projection.NoEpoch {
		ctx, cancel := context.WithTimeout(w.ctx, watchWithin)
		defer cancel()
		if asked, err := w.c.epochEnd(ctx, w.partition, w.session.Next().LeaderEpoch); err == nil {
			end.epochEnd = asked
		}
	}
	lost := end.contradicts(w.session.Next())
	if lost.found == "" {
		lost.found = "the log did not reach to there"
	}
	return w.stopForAll(w.session.Next().Offset, lost)
}

// isStopped reports whether the partition is stopped until a person sets its position.
func isStopped(err error) bool {
	var stopped *projection.StoppedError
	return errors.As(err, &stopped)
}

// batchTooLarge says that Kafka holds a batch of more than limit bytes.
type batchTooLarge struct{ limit int }

// Error implements error.
func (e batchTooLarge) Error() string {
	return fmt.Sprintf("a batch of records is larger than --max-batch-bytes (%d)", e.limit)
}

// SafeText implements errclass.Describer.
func (e batchTooLarge) SafeText() string { return e.Error() }
