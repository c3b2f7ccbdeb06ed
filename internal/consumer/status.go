package consumer

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"projector/errclass"
	"projector/internal/pace"
	"projector/internal/topic"
	"projector/projection"
)

// status has the fields of a worker that other goroutines read.
type status struct {
	position atomic.Int64 // durable position; valid only if fence is not 0
	fence    atomic.Int64 // 0 if the position is not known or not valid
	first    atomic.Int64 // first offset of the log; -1 if not known
	lagging  atomic.Int64 // time in ms when the lag was first seen; 0 if there is no lag
	end      atomic.Int64 // end of the log in the last answer; -1 if there was none
	held     atomic.Int64 // end of the log while a transaction holds records back for long; 0 if none does
	moved    atomic.Int64 // time in ms when the position last moved; 0 if it has not moved

	mu        sync.Mutex
	state     projection.State
	since     time.Time
	reason    string
	obstacles [obstacles]string // reason of each obstacle; empty if it does not exist
}

// idleAfter is the time without new records after which a partition is idle.
const idleAfter = 10 * time.Second

// lagStart returns the offset from which the lag is counted. It is the position or, without a
// position, the first offset of the log. It returns -1 if the first offset is needed and not known.
func (s *status) lagStart() int64 {
	if s.fence.Load() > 0 {
		return s.position.Load()
	}
	return s.first.Load()
}

// setLog stores the start and the end of the partition's log.
func (s *status) setLog(log partitionInfo) {
	s.first.Store(log.start)
	if log.stable != projection.NoOffset {
		s.end.Store(log.stable)
	}
}

func (s *status) claimed(pos projection.Position) {
	s.position.Store(pos.Next)
	s.fence.Store(pos.Fence)
}

func (s *status) set(state projection.State, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.change(state, reason)
}

// waiting reports whether the partition waits for a person.
func (s *status) waiting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Waiting()
}

// change sets the state and the reason. The caller holds mu.
func (s *status) change(state projection.State, reason string) {
	if s.state != state {
		s.since = time.Now()
	}
	s.state, s.reason = state, reason
}

// PartitionStatus describes one assigned partition. End is -1 if it is not known.
type PartitionStatus struct {
	Partition     int32
	State         projection.State
	Since         time.Time // a change between flowing, idle and throttled does not count
	Reason        string
	Position, End int64
	Claimed       bool // Position is known
	LagKnown      bool
	LagRecords    int64
	LagSeconds    float64
}

// Status lists the assigned partitions in order. It does no I/O.
func (c *Consumer) Status() []PartitionStatus {
	partitions := c.assignment()
	slices.Sort(partitions)
	now := time.Now()
	list := make([]PartitionStatus, 0, len(partitions))
	for _, p := range partitions {
		if w := c.worker(p); w != nil {
			list = append(list, w.describe(now))
		}
	}
	return list
}

func (w *worker) describe(now time.Time) PartitionStatus {
	s := &w.status
	s.mu.Lock()
	d := PartitionStatus{Partition: w.partition, State: s.state, Since: s.since, Reason: s.reason}
	s.mu.Unlock()
	d.Claimed = s.fence.Load() > 0 // before the position, because a claim stores the position first
	d.Position, d.End = s.position.Load(), s.end.Load()
	var age time.Duration
	d.LagRecords, age, d.LagKnown = w.lag(now)
	d.LagSeconds = age.Seconds()
	if d.Claimed && d.End >= 0 {
		d.End = max(d.End, d.Position) // End may be some seconds old
	}
	if d.State == projection.StateFlowing {
		d.State = w.exactState(d, now)
	}
	return d
}

// exactState returns the state of a flowing partition: flowing, idle or throttled.
func (w *worker) exactState(d PartitionStatus, now time.Time) projection.State {
	switch {
	case w.queue.isPaused():
		return projection.StateThrottled
	case d.End == d.Position && now.Sub(time.UnixMilli(w.status.moved.Load())) > idleAfter:
		return projection.StateIdle
	default:
		return projection.StateFlowing
	}
}

// watchLag reads the ends of the partitions. It also reports an assigned partition whose leader does
// not answer, because the client repeats a fetch without reporting an error. The other brokers may
// still reach that leader, and then report no problem.
func (c *Consumer) watchLag(ctx context.Context) {
	pace.Every(ctx, lagEvery, lagEvery, func(ctx context.Context) {
		ends, err := topic.Offsets(ctx, c.cfg.Topic, c.adm.ListCommittedOffsets)
		if err != nil {
			return // watchKafka and watchAccess report the error
		}
		var silent error
		for _, p := range c.assignment() {
			w := c.worker(p)
			end, known := ends[p]
			if w == nil || !known {
				continue
			}
			c.noteLeader(w, end.Err)
			if end.Err != nil { // the partition keeps its last known end
				silent = end.Err
				continue
			}
			w.status.end.Store(max(end.Offset, w.status.held.Load()))
			if w.status.fence.Load() == 0 {
				if info, err := c.partitionInfo(ctx, p); err == nil {
					w.status.first.Store(info.start)
				}
			}
			w.reportLag()
		}
		c.throttled("kafka", "read the ends of the partitions").Note(silent, lagEvery)
	})
}

// logCondition is the suffix in the name of the condition for a leader that does not answer.
const logCondition = " log"

// noteLeader reports whether the leader of the worker's partition has answered. A partition without
// a leader is reported by watchLeaders.
func (c *Consumer) noteLeader(w *worker, err error) {
	condition := c.condition(w.partition) + logCondition
	c.whileOwned(w, func() {
		if err == nil || errors.Is(err, kerr.LeaderNotAvailable) {
			c.cfg.Health.OK(condition)
			return
		}
		// The request has already taken up to lagEvery.
		c.cfg.Health.FailAfter(condition, "Kafka: the leader of the partition does not answer: "+errclass.Safe(err)+
			". See the runbook, \"A broker cannot be reached\"", stuckAfter-lagEvery)
	})
}

// whileOwned calls fn if w is still the worker of its partition. The partition cannot be given up
// meanwhile. Otherwise, a condition that fn sets would stay after the partition is given up.
func (c *Consumer) whileOwned(w *worker, fn func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.workers[w.partition] == w {
		fn()
	}
}

func (w *worker) claimed(pos projection.Position) {
	w.status.claimed(pos)
	w.reportLag()
}

func (w *worker) reportLag() {
	if records, age, known := w.lag(time.Now()); known {
		w.c.cfg.Observer.Lag(w.partition, records, age.Seconds())
	}
}

// lag returns how many records of the partition are not durable yet. Without a position, these are
// all records of the log. The result age is the age of the oldest fetched record that is not
// durable. If there is none, age is the time since the lag was first seen. The status page and the
// metrics of the lag both show this lag.
func (w *worker) lag(now time.Time) (records int64, age time.Duration, known bool) {
	s := &w.status
	end, from := s.end.Load(), s.lagStart()
	if end < 0 || from < 0 {
		return 0, 0, false
	}
	if records = end - from; records <= 0 {
		s.lagging.Store(0)
		return 0, 0, true
	}
	s.lagging.CompareAndSwap(0, now.UnixMilli())
	oldest := w.session.Oldest()
	if oldest == 0 {
		oldest = w.queue.oldest()
	}
	if oldest <= 0 || oldest > now.UnixMilli() { // the record's time is missing or in the future
		oldest = s.lagging.Load()
	}
	return records, max(0, now.Sub(time.UnixMilli(oldest))), true
}

// logRewind logs why a position was moved back, by this claim or before it. After such a move,
// records that are already applied are read again. It reports whether the database itself may be at
// an earlier state, as after a failover. A position that a person has set does not exclude this.
func (w *worker) logRewind(kafka int64, found projection.FencedOffset, pos projection.Position) (restored bool) {
	from, reason := projection.NoOffset, ""
	switch known := w.status.position.Load(); {
	case w.status.fence.Load() > 0 && found.Next < known:
		from, restored = known, true
		reason = "the stored position is behind what was durable: the database was restored, or the position was set back"
	case kafka > found.Next && found.Fence == 0:
		from, reason = kafka, "the database has no position, although Kafka has a committed offset: it is another database, or it was restored"
	case kafka > found.Next:
		from, restored = kafka, true
		reason = "the stored position is behind Kafka's committed offset: the database was restored, or the position was set back"
	case pos.Next < found.Next:
		from, reason = found.Next, "Kafka's committed offset is lower than the stored position"
	}
	if pos.Next < from {
		w.log.Warn("the position was taken back", slog.Int64("from", from), slog.Int64("to", pos.Next), slog.String("reason", reason))
	}
	return restored
}
