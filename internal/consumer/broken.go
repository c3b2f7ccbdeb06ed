package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/projection"
)

// brokenOff is why nothing follows the records of a partition that were fetched.
type brokenOff struct {
	reason     string
	outOfRange bool             // the log does not reach there: its start or its end is elsewhere
	loss       *kgo.ErrDataLoss // the log has lost its end, says the client
}

// breakOff is called by the poller when Kafka refuses to serve the partition from
// some offset on. What was fetched before it is still judged.
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
	case w.next.Offset <= broken.loss.ResetTo: // nothing that was consumed is lost
		return errRejudge
	}
	return w.stopForAll(w.next.Offset, lostBehind(broken.loss.ConsumedToEpoch, broken.loss.ResetTo))
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
		return errRejudge // the claim says so
	case w.next.Offset < log.start:
		return w.halt(expired(w.next.Offset, log.start))
	}
	end := logEnd{offset: log.end, epoch: log.epoch, epochEnd: projection.NoOffset}
	if w.next.LeaderEpoch != projection.NoEpoch {
		ctx, cancel := context.WithTimeout(w.ctx, watchWithin)
		defer cancel()
		if asked, err := w.c.epochEnd(ctx, w.partition, w.next.LeaderEpoch); err == nil {
			end.epochEnd = asked
		}
	}
	lost := end.contradicts(w.next)
	if lost.found == "" {
		lost.found = "the log did not reach to there"
	}
	return w.stopForAll(w.next.Offset, lost)
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
