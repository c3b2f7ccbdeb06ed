package consumer

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// breakOff is called by the poller when Kafka refuses to serve the partition from
// some offset on. What was fetched before it is still judged.
func (w *worker) breakOff(err error) {
	var (
		reason string
		large  *kgo.ErrDecompressTooLarge
	)
	switch {
	case errors.Is(err, kerr.OffsetOutOfRange):
		reason = fmt.Sprintf("offset %d is outside the partition's log: removed by retention before it was consumed, "+
			"or the log was truncated. See the runbook, \"position expired\"", w.status.position.Load())
	case errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.InconsistentTopicID):
		reason = "the topic was deleted, or deleted and created again. See the runbook, \"topic recreated\""
	case errors.As(err, &large):
		reason = fmt.Sprintf("%s: offsets %d to %d. See the runbook, \"batch too large\"",
			batchTooLarge{w.c.cfg.Limits.BatchBytes}, large.Offset, large.NextOffset-1)
	default:
		return
	}
	w.queue.breakOff(reason)
}

// stopAtBreak writes what lies before the break and stops the partition.
func (w *worker) stopAtBreak(reason string) error {
	if err := w.flush(); err != nil {
		return err
	}
	return w.halt(reason)
}

// batchTooLarge says that Kafka holds a batch of more than limit bytes.
type batchTooLarge struct{ limit int }

// Error implements error.
func (e batchTooLarge) Error() string {
	return fmt.Sprintf("a batch of records is larger than --max-batch-bytes (%d)", e.limit)
}

// SafeText implements errclass.Describer.
func (e batchTooLarge) SafeText() string { return e.Error() }
