package consumer

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"projector/dlq"
	"projector/errclass"
	"projector/internal/pace"
	"projector/internal/retry"
	"projector/internal/session"
	"projector/projection"
)

// errHalted ends a session because the partition was stopped or paused.
var errHalted = errors.New("partition stopped")

// errDrained ends a session because the worker must stop.
var errDrained = errors.New("drained")

// worker processes one partition from its assignment to its revocation.
type worker struct {
	c         *Consumer
	partition int32
	log       *slog.Logger
	session   *session.Session
	trace     Trace
	queue     *queue
	chunks    chan *chunk

	// ctx ends when the worker must stop immediately, because the partition is lost or its last
	// flush takes too long.
	ctx    context.Context
	cancel context.CancelCauseFunc
	// drain ends when the worker must flush and stop, because the partition is revoked or the
	// process stops.
	drain     context.Context
	startStop context.CancelFunc
	done      chan struct{}

	// changed ends unchanged. It is called when the stored position is no longer that of the last claim.
	changed atomic.Pointer[context.CancelFunc]

	committed chan int64    // receives Kafka's committed offset one time
	recheck   chan struct{} // receives a value when the worker must claim again
	status    status

	// Only the worker's goroutine uses these fields.
	unchanged   context.Context // ends with drain, or when the stored position has changed since the last claim
	outage      *retry.Outage   // see flushOutage
	pause       time.Duration   // wait before the partition is claimed again
	epoch       int             // records of other epochs are dropped, see queue
	topicID     string
	delivery    *dlq.Delivery
	deliveredTo int64  // offset after the last batch whose dead letters are in delivery
	last        bool   // only one attempt to publish is made, because the worker stops
	halted      string // reason of the last stop
	untilFlush  bool   // only a flush shows that the reason is gone, because a claim succeeds all the same
	haltLogged  time.Time

	held        held        // only watchTransactions uses this field
	offsetKnown atomic.Bool // Kafka's committed offset was returned
}

const (
	// flushWithin is the longest time that a flush should take. If a position does not move for a
	// longer time than this, people think that the partition is stuck.
	flushWithin = 10 * time.Second
	// overtakenFreely is how many times in a row records may be processed again without a wait.
	overtakenFreely = 2
)

// newWorker returns a worker that uses the values of ctx. The worker ends only when it is stopped.
func newWorker(ctx context.Context, c *Consumer, partition int32) *worker {
	w := &worker{
		c: c, partition: partition,
		log:       c.partitionLog(partition),
		trace:     c.cfg.Trace(partition),
		chunks:    make(chan *chunk, chunksAhead),
		done:      make(chan struct{}),
		committed: make(chan int64, 1),
		recheck:   make(chan struct{}, 1),
	}
	w.session = session.New(c.cfg.Open(partition), w, session.Limits{
		Events: c.cfg.Limits.FlushEvents, Within: flushWithin, Silence: c.cfg.Retry.Attempt,
		Freely: overtakenFreely,
	})
	w.queue = newQueue(shared{
		held: &c.queued, busy: &c.busy, tooBig: c.tooBig,
		pause: func() { c.pause(partition) }, resume: func() { c.resume(partition) },
	})
	w.ctx, w.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	w.drain, w.startStop = context.WithCancel(w.ctx)
	w.unchanged = w.drain
	w.status.end.Store(-1)
	w.status.first.Store(-1)
	w.status.set(projection.StateStarting, "")
	return w
}

func (w *worker) start() {
	var running sync.WaitGroup
	running.Go(w.decode)
	running.Go(w.run)
	go func() {
		running.Wait()
		w.cancel(nil)
		w.queue.close()
		close(w.done)
	}()
}

// stop stops the worker and waits for its end. Until ctx ends, the worker may flush what is
// pending.
func (w *worker) stop(ctx context.Context) {
	w.startStop()
	select {
	case <-w.done:
	case <-ctx.Done():
		w.cancel(context.Cause(ctx))
		<-w.done
	}
}

// run claims the partition and consumes it until the worker is stopped.
func (w *worker) run() {
	defer w.trace.Dropped(errDrained) // ends the spans of records that are not durable
	var kafka int64
	select {
	case kafka = <-w.committed:
	case <-w.drain.Done():
		return
	}
	for w.drain.Err() == nil {
		claimed, err := w.consume(kafka)
		if claimed || errors.Is(err, session.ErrAgain) || errors.Is(err, errHalted) {
			kafka = projection.NoOffset // Kafka's offset is used for the first claim only
		}
		switch {
		case errors.Is(err, session.ErrAgain):
			_ = pace.Sleep(w.unchanged, w.pause)
			w.pause = 0
		case errors.Is(err, errDrained):
			return
		case errors.Is(err, errHalted):
			if !w.awaitRepair() {
				return
			}
		default: // all expected errors are handled above
			_ = w.halt(errclass.Safe(err))
			if !w.awaitRepair() {
				return
			}
		}
	}
}

// consume claims the partition and consumes it until it has to be claimed again. It reports whether
// the claim succeeded.
func (w *worker) consume(kafka int64) (claimed bool, err error) {
	pos, err := w.claim(kafka)
	if err != nil {
		return false, err
	}
	var changed context.CancelFunc
	w.unchanged, changed = context.WithCancel(w.drain)
	if before := w.changed.Swap(&changed); before != nil {
		(*before)()
	}
	w.epoch++
	w.c.committer.mark(w.partition, pos.Next)
	w.c.seek(w, pos.NextOffset(), w.epoch)
	w.markRunning()
	if w.session.Begin(pos) {
		w.flushOutage().Over()
	}
	err = w.process()
	if errors.Is(err, errDrained) {
		w.flushLast()
	}
	if w.session.OutcomeKnown() {
		w.trace.Dropped(err)
	}
	return true, err
}

// process folds and flushes until the worker must stop or the partition has to be claimed again.
func (w *worker) process() error {
	for {
		more, err := w.heal()
		if err != nil {
			return err
		}
		c, err := w.nextChunk(more)
		if err != nil {
			return w.interrupted(err)
		}
		if c != nil && c.broken != nil {
			return w.stopAtBreak(c.broken)
		}
		if c != nil {
			err := w.processChunk(c)
			c.release()
			if err != nil {
				return err
			}
		}
		if c == nil || w.flushDue() {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
}

// interrupted returns the error that ends process. If the worker must claim the partition again, it
// first writes what is pending. Otherwise each claim would drop the pending events, and with
// frequent claims the partition would make no progress.
func (w *worker) interrupted(err error) error {
	if errors.Is(err, session.ErrAgain) {
		return cmp.Or(w.flush(), err)
	}
	return err
}

// heal applies and flushes some parked events of accounts whose gap is filled. The result more is
// whether further parked events can be applied.
func (w *worker) heal() (more bool, err error) {
	healed, err := w.session.Heal(w.context())
	if err != nil || !healed {
		return false, err
	}
	err = w.flush()
	return w.session.Pending().Healing, err
}

// processChunk folds the records of a chunk. It also flushes when no more events fit into the
// pending flush.
func (w *worker) processChunk(c *chunk) error {
	w.trace.Folding(c.traced)
	for rest := c.records; len(rest) > 0; {
		n, err := w.session.Fold(w.context(), rest)
		if err != nil {
			return err
		}
		if rest = rest[n:]; len(rest) > 0 || w.session.Full() {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	w.session.Skip(c.next)
	return nil
}

// context returns the context for operations on the current records.
func (w *worker) context() context.Context { return w.trace.Context(w.ctx) }

// nextChunk waits for the next chunk. If no event is pending, the wait has no limit. Otherwise it
// returns nil when the time for a flush has come and no chunk is there. If urgent is true, it does
// not wait. It returns session.ErrAgain if the worker must claim the partition again.
func (w *worker) nextChunk(urgent bool) (*chunk, error) {
	var due <-chan time.Time
	if urgent || w.session.Pending().Events > 0 {
		wait := time.Duration(0)
		if !urgent {
			wait = max(0, w.flushAge()-time.Since(w.session.Since()))
		}
		timer := time.NewTimer(wait)
		defer timer.Stop()
		due = timer.C
	}
	for {
		select {
		case c := <-w.chunks:
			if w.isCurrent(c) {
				return c, nil
			}
		case <-due:
			return w.readyChunk(), nil
		case <-w.recheck:
			return nil, session.ErrAgain
		case <-w.drain.Done():
			return nil, errDrained
		}
	}
}

// readyChunk returns the next chunk without waiting, or nil. So each time that an account with many
// parked events heals, the other accounts of the partition then have their turn.
func (w *worker) readyChunk() *chunk {
	select {
	case c := <-w.chunks:
		if w.isCurrent(c) {
			return c
		}
	default:
	}
	return nil
}

// isCurrent reports whether a chunk belongs to the current epoch. It releases any other chunk.
func (w *worker) isCurrent(c *chunk) bool {
	if c.epoch == w.epoch {
		return true
	}
	c.release()
	return false
}

// flushDue reports whether to flush now instead of folding more records. At the end of the
// partition, a flush is due immediately. Before the end, a flush is due when a limit of the pending
// changes is reached, or when the first pending event has waited for flushAge.
func (w *worker) flushDue() bool {
	if w.session.Durable() {
		return false
	}
	p, since := w.session.Pending(), w.session.Since()
	return len(w.chunks) == 0 && w.session.Next().Offset >= w.queue.stableEnd() ||
		p.Full || w.session.Full() || int64(p.Bytes) >= w.c.flushBytes.Load() ||
		!since.IsZero() && time.Since(since) >= w.flushAge()
}

// flushAge returns how long to gather events before a flush. After a failed flush, and while parked
// events can be applied, it is an eighth of FlushAge. A repair that has overtaken this consumer waits
// until the position moves, and otherwise overtakes it again. Parked events are applied only after a
// flush.
func (w *worker) flushAge() time.Duration {
	if w.session.Failing() || w.session.Pending().Healing {
		return w.c.cfg.Limits.FlushAge / 8
	}
	return w.c.cfg.Limits.FlushAge
}
