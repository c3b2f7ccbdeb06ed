package consumer

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"projector/dlq"
	"projector/errclass"
	"projector/internal/pace"
	"projector/internal/retry"
	"projector/projection"
)

// errRejudge ends a session: what is pending is dropped, the partition is claimed
// anew and its records are read again from the durable position.
var errRejudge = errors.New("judge again from the durable position")

// errHalted ends a session that only a person can help.
var errHalted = errors.New("partition stopped")

// errDrained ends a session because the worker is to stop.
var errDrained = errors.New("drained")

// worker owns one assigned partition, from assignment to revocation.
type worker struct {
	c         *Consumer
	partition int32
	log       *slog.Logger
	proj      Projection
	trace     Trace
	queue     *queue
	chunks    chan *chunk

	ctx       context.Context // ends at once: lost, or drained too slowly
	cancel    context.CancelCauseFunc
	drain     context.Context // ends waiting: revoked or shutting down
	startStop context.CancelFunc
	done      chan struct{}

	committed chan int64    // Kafka's committed offset, once, when the group has told it
	recheck   chan struct{} // the stored position is not what this worker knows
	status    status

	// Of all sessions, used by the worker's goroutine only.
	size      pace.Size     // events a flush
	flushTook time.Duration // the last that succeeded
	outage    *retry.Outage // see writing
	failedTo  int64         // what the flushes of the outage were to make durable lies before
	pause     time.Duration // before the next session
	overtaken int           // sessions that ended because the database had moved on, since a flush succeeded
	unsettled *unsettled    // the last write, when it failed; nil: its outcome is known

	// Of the session, used by the worker's goroutine only.
	epoch    int
	topicID  string
	next     projection.NextOffset // behind the last record judged
	since    time.Time
	delivery *dlq.Delivery
	halted   string // why it was stopped last
	haltTold time.Time
}

const (
	// firstFlush is how many events a new worker's first flush takes in. It doubles from
	// flush to flush, so that a database that is slow shows it on little work.
	firstFlush = 1024
	// flushWithin is how long a flush is to take: a position that stands still for longer
	// cannot be told from one that is stuck.
	flushWithin = 4 * time.Second
	// leastGathering is how long a partition that is far behind gathers events for a
	// flush at least, however long the last one took.
	leastGathering = time.Second
)

func newWorker(c *Consumer, partition int32) *worker {
	w := &worker{
		c: c, partition: partition,
		log:       c.partitionLog(partition),
		proj:      c.cfg.Open(partition),
		trace:     c.trace(partition),
		chunks:    make(chan *chunk, chunksAhead),
		done:      make(chan struct{}),
		committed: make(chan int64, 1),
		recheck:   make(chan struct{}, 1),
		size:      pace.NewSize(firstFlush, c.cfg.Limits.FlushEvents, flushWithin),
	}
	w.queue = newQueue(room{
		held: &c.queued, tooBig: c.tooBig,
		pause: func() { c.pause(partition) }, resume: func() { c.resume(partition) },
	})
	w.ctx, w.cancel = context.WithCancelCause(context.Background())
	w.drain, w.startStop = context.WithCancel(w.ctx)
	w.status.end.Store(-1)
	w.status.first.Store(-1)
	w.status.set(Starting, "")
	return w
}

// start runs the worker until it is stopped.
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

// stop ends the worker: it may take until ctx ends to flush what is pending. It
// returns when the worker has ended.
func (w *worker) stop(ctx context.Context) {
	w.startStop()
	select {
	case <-w.done:
	case <-ctx.Done():
		w.cancel(context.Cause(ctx))
		<-w.done
	}
}

// run goes from session to session.
func (w *worker) run() {
	defer w.trace.Dropped(errDrained) // what is not settled
	var kafka int64
	select {
	case kafka = <-w.committed:
	case <-w.drain.Done():
		return
	}
	for w.drain.Err() == nil {
		err := w.session(kafka)
		switch {
		case errors.Is(err, errRejudge):
			kafka = projection.NoOffset // the stored position is the truth now
			w.c.cfg.Retry.Sleep(w.drain, w.pause)
			w.pause = 0
		case errors.Is(err, errDrained):
			return
		case errors.Is(err, errHalted):
			kafka = projection.NoOffset
			if !w.awaitRepair() {
				return
			}
		default: // nothing is known that could bring it here, so it must not pass unseen
			_ = w.halt(errclass.Safe(err))
			if !w.awaitRepair() {
				return
			}
		}
	}
}

// session claims the partition and consumes it until something makes what it
// knows worthless.
func (w *worker) session(kafka int64) error {
	pos, err := w.claim(kafka)
	if err != nil {
		return err
	}
	w.epoch++
	w.next, w.since = projection.NextOffset{Offset: pos.Next, LeaderEpoch: pos.LeaderEpoch}, time.Time{}
	w.status.oldest.Store(0)
	w.c.committer.mark(w.partition, pos.Next)
	w.c.seek(w, w.next, w.epoch)
	w.passed(notAnswered)       // it may have been stopped before
	if pos.Next >= w.failedTo { // nothing that failed is left to write: somebody has moved the position
		w.failedTo = 0
		w.writing().Over()
	}
	err = w.consume()
	if errors.Is(err, errDrained) {
		w.flushLast()
	}
	if w.unsettled == nil {
		w.trace.Dropped(err)
	}
	return err
}

// consume judges and flushes until it is drained or has to judge again.
func (w *worker) consume() error {
	for {
		more, err := w.heal()
		if err != nil {
			return err
		}
		c, err := w.nextChunk(more)
		if err != nil {
			return err
		}
		if c != nil && c.broken != nil {
			return w.stopAtBreak(c.broken)
		}
		if c != nil {
			err = w.judge(c)
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

// nextChunk waits for a chunk: for ever when nothing is pending, else until the
// flush is due, which it says by answering nil. urgent does not wait.
func (w *worker) nextChunk(urgent bool) (*chunk, error) {
	var due <-chan time.Time
	if urgent || w.proj.Pending().Events > 0 {
		wait := time.Duration(0)
		if !urgent {
			wait = max(0, w.gathering()-time.Since(w.since))
		}
		timer := time.NewTimer(wait)
		defer timer.Stop()
		due = timer.C
	}
	for {
		select {
		case c := <-w.chunks:
			if c.epoch != w.epoch {
				c.release()
				continue
			}
			return c, nil
		case <-due:
			return nil, nil
		case <-w.recheck:
			return nil, errRejudge
		case <-w.drain.Done():
			return nil, errDrained
		}
	}
}

// judge folds a chunk, flushing in between when the limit of pending events is
// reached.
func (w *worker) judge(c *chunk) error {
	w.trace.Judging(c.traced)
	rest := c.records
	for len(rest) > 0 {
		if w.since.IsZero() {
			w.since = time.Now()
			w.status.oldest.Store(rest[0].Record.Timestamp)
		}
		n, ask := 0, len(rest)
		err := w.retry("postgres", "read accounts", func(ctx context.Context) error {
			judged, err := w.proj.Judge(ctx, rest[n:min(n+ask, len(rest))], w.size.Limit())
			if n += judged; err != nil {
				ask = max(1, ask/2) // for fewer accounts at a time
			}
			return err
		})
		if n > 0 {
			w.next = rest[n-1].Record.Next()
		}
		if err != nil {
			return err
		}
		if rest = rest[n:]; len(rest) > 0 || w.proj.Pending().Events >= w.size.Limit() {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	w.next = c.next
	return nil
}

// heal applies and flushes a piece of what waits for accounts whose hole has been
// filled, and reports whether more of it waits. It leaves that while records are
// pending: their flush comes first.
func (w *worker) heal() (bool, error) {
	if w.proj.Pending().Events > 0 {
		return false, nil
	}
	var more bool
	limit := w.size.Limit()
	err := w.retry("postgres", "heal accounts", func(ctx context.Context) (err error) {
		if more, err = w.proj.Heal(ctx, limit); err != nil {
			limit = max(1, limit/2)
		}
		return err
	})
	if err != nil || w.proj.Pending().Events == 0 {
		return false, err
	}
	return more, w.flush()
}

// flushDue decides whether to write now or to fold more first: at the end of the
// partition at once, behind it when enough has been gathered.
func (w *worker) flushDue() bool {
	if w.flushedAll() {
		return false
	}
	p := w.proj.Pending()
	return len(w.chunks) == 0 && w.next.Offset >= w.queue.stableEnd() ||
		p.Full || p.Events >= w.size.Limit() || int64(p.Bytes) >= w.c.flushBytes.Load() ||
		!w.since.IsZero() && time.Since(w.since) >= w.gathering()
}

// gathering is how long events are gathered for a flush when far behind. What the last
// flush took is part of it, so that the position moves every few seconds.
func (w *worker) gathering() time.Duration {
	age := w.c.cfg.Limits.FlushAge
	return max(min(age, leastGathering), age-w.flushTook)
}
