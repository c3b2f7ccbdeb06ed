package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/errclass"
	"projector/internal/pace"
	"projector/internal/session"
	"projector/projection"
)

// A log loses its last records when a replica without them becomes the leader (an unclean leader
// election), or when a broker is restored with an older disk. New records then get the offsets of
// the lost records. If the stored position is after the log's new end, these new records would be
// skipped. So the partition stops, for every member that owns it, until a person sets the position.

// logEnd is the end of a partition's log, as its leader reports it.
type logEnd struct {
	offset int64 // offset after the last record
	epoch  int32 // epoch of the leader; projection.NoEpoch if not known
	// epochEnd is the offset after the last record of the position's leader epoch. It is
	// projection.NoOffset if that offset is not known.
	epochEnd int64
}

// loss describes what a log has lost.
type loss struct {
	// end is the offset up to which the log still has the consumed records. It is
	// projection.NoOffset if that offset is not known.
	end   int64
	found string // how the loss was found; empty if nothing is lost
}

// contradicts compares the log's end with the position next. It returns a loss if the log does not
// have all records that were consumed before the position.
func (e logEnd) contradicts(next projection.NextOffset) loss {
	switch {
	case e.epochEnd != projection.NoOffset && e.epochEnd < min(next.Offset, e.offset):
		return lostFrom(next.LeaderEpoch, e.epochEnd)
	case e.offset < next.Offset:
		return loss{e.offset, fmt.Sprintf("the log ends at %d", e.offset)}
	case e.olderEpoch(next):
		return loss{projection.NoOffset, fmt.Sprintf("the records up to there are of leader epoch %d, and the leader is of epoch %d",
			next.LeaderEpoch, e.epoch)}
	}
	return loss{end: projection.NoOffset}
}

// lostFrom returns the loss of all consumed records from the offset end on. The loss was found
// because the leader epoch of these records now ends at this offset.
func lostFrom(epoch int32, end int64) loss {
	return loss{end, fmt.Sprintf("the records up to there are of leader epoch %d, which ends at %d", epoch, end)}
}

// olderEpoch reports whether the leader's epoch is lower than the epoch of the consumed records. In
// that case the leader does not know that it was replaced, or the cluster has lost its metadata.
func (e logEnd) olderEpoch(next projection.NextOffset) bool {
	return e.epoch != projection.NoEpoch && e.epoch < next.LeaderEpoch
}

// believed reports whether an answer that contradicts the position is accepted. The parameter
// elapsed is the duration from the first such answer to now.
func (e logEnd) believed(next projection.NextOffset, elapsed time.Duration) bool {
	return !e.olderEpoch(next) || elapsed >= olderEpochFor
}

const (
	// lostAsks is how many answers in a row must contradict the position before the partition
	// stops. lostPause is the pause between two requests. One answer is not enough, because the
	// leader may be changing.
	lostAsks  = 4
	lostPause = 300 * time.Millisecond
	// olderEpochFor is how long answers are not accepted from a leader whose epoch is lower than
	// the epoch of the consumed records. It is longer than the brokers need to detect a dead broker
	// and to elect another leader.
	olderEpochFor = 20 * time.Second
)

// lostEnd returns what the log has lost before the position next.
func (w *worker) lostEnd(next projection.NextOffset, log partitionInfo) (lost loss, err error) {
	if next.Offset <= log.end && (next.LeaderEpoch == projection.NoEpoch || next.LeaderEpoch == log.epoch) {
		return lost, nil // the position is before the log's end, and no leader was elected since it was stored
	}
	began := time.Now()
	err = w.retry("kafka", "compare the position with the log", func(ctx context.Context) (err error) {
		lost, err = w.askForEnd(ctx, next, log, began)
		return w.c.cfg.Access.Consuming(err)
	})
	return lost, err
}

// askForEnd asks for the log's end until an answer agrees with the position, or until lostAsks
// answers have contradicted it. The parameter log is used as the first answer, unless its end is
// before the position.
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

// stopForAll stops a partition whose log has lost records that were already consumed. The partition
// is stopped for every owner until a person sets the position.
func (w *worker) stopForAll(position int64, lost loss) error {
	reason := fmt.Sprintf("the log has lost its end: the position is %d, and %s. It stays stopped until a person sets the position. "+
		"See the runbook, \"log lost its end\"", position, lost.found)
	err := w.retry("postgres", "stop the partition", func(ctx context.Context) error {
		return w.c.cfg.Database.Stop(ctx, w.partition, w.status.fence.Load(), lost.end, reason)
	})
	switch {
	case errors.Is(err, projection.ErrFenced):
		return session.ErrAgain
	case err != nil:
		return err
	}
	return w.suspend(projection.StateStopped, reason)
}

// brokenOff is the reason why a partition cannot be fetched any more.
type brokenOff struct {
	reason     string
	outOfRange bool             // the offset is before the start or after the end of the log
	loss       *kgo.ErrDataLoss // the client has detected that the log has lost records
}

// breakOff ends the fetching of the partition if the client cannot continue after the error err. It
// ignores all other errors, because the client retries after them. The poller calls breakOff for
// each fetch error of the partition. The worker still processes the records that were already
// fetched, and then calls stopAtBreak.
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
			w.c.batchTooLarge(), large.Offset, large.NextOffset-1)
	default:
		return
	}
	w.queue.breakOff(&broken)
}

// stopAtBreak flushes the records that were fetched. Then it stops the partition, or makes the
// worker claim it again.
func (w *worker) stopAtBreak(broken *brokenOff) error {
	if err := w.flush(); err != nil {
		return err
	}
	switch {
	case broken.outOfRange:
		return w.stopOutOfRange()
	case broken.loss == nil:
		return w.halt(broken.reason)
	case w.session.Next().Offset <= broken.loss.ResetTo: // all consumed records are still there
		return session.ErrAgain
	}
	return w.stopForAll(w.session.Next().Offset, lostFrom(broken.loss.ConsumedToEpoch, broken.loss.ResetTo))
}

// stopOutOfRange stops a partition whose next offset is outside the log. It uses the first answer
// about the log's end, because producers may later append records past the next offset, which would
// hide the loss.
func (w *worker) stopOutOfRange() error {
	var log partitionInfo
	err := w.retry("kafka", "read the partition's offsets", func(ctx context.Context) (err error) {
		log, err = w.c.partitionInfoSince(ctx, w.partition, time.Now())
		return w.c.cfg.Access.Consuming(err)
	})
	switch {
	case err != nil:
		return err
	case !projection.SameTopic(log.id, w.topicID):
		return session.ErrAgain // the next claim stops it, because the topic was created again
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

func (c *Consumer) batchTooLarge() error {
	return errclass.Text(fmt.Sprintf("a batch of records is larger than --max-batch-bytes (%d)", c.cfg.Limits.BatchBytes))
}
