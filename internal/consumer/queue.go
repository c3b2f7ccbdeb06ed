package consumer

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/topic"
)

// queue stores the fetched records of one partition until they are decoded. Each seek begins a new
// epoch, and records of an earlier epoch are dropped.
type queue struct {
	mu      sync.Mutex
	records []*kgo.Record
	bytes   int
	epoch   int
	paused  bool
	closed  bool
	// broken is the reason why no more records arrive. It is nil if more records may arrive, or if
	// removeBreak has already returned the reason.
	broken  *brokenOff
	ended   bool  // no more records are accepted until restart
	held    bool  // no more records are removed until restart
	end     int64 // highest last stable offset in the fetches of this epoch
	fetched int   // number of records fetched after the last time that all were durable
	busy    bool  // see occupy
	// obsolete ends the decoding of the records that were removed last. It is nil if nothing was removed
	// since restart or hold.
	obsolete context.CancelFunc
	arrived  chan struct{}
	shared   shared
}

// shared has the counters of all queues, and the functions that pause and resume this partition.
// The queue calls the functions pause and resume while it holds its lock. Otherwise a pause could
// be executed after the resume that should end it, and the partition would stop for ever.
type shared struct {
	held          *atomic.Int64        // bytes in all queues
	busy          *atomic.Int64        // see Consumer.Busy
	tooBig        func(bytes int) bool // reports whether a queue of this size is too large now
	pause, resume func()
}

func newQueue(s shared) *queue {
	return &queue{arrived: make(chan struct{}, 1), shared: s}
}

// put appends records. If the queue is then too large, it pauses the partition.
func (q *queue) put(records []*kgo.Record, end int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.ended {
		return
	}
	q.end = max(q.end, end)
	for _, r := range records {
		q.grow(recordBytes(r))
	}
	q.records = append(q.records, records...)
	q.fetched += len(records)
	q.occupy(q.fetched <= fewRecords)
	q.wake()
	if !q.paused && q.shared.tooBig(q.bytes) {
		q.paused = true
		q.shared.pause()
	}
}

// fewRecords is the largest number of fetched records that will probably be durable soon (see
// occupy).
const fewRecords = 32

// occupy notes whether the partition has records that will probably be durable soon.
func (q *queue) occupy(busy bool) {
	switch {
	case busy && !q.busy:
		q.shared.busy.Add(1)
	case !busy && q.busy:
		q.shared.busy.Add(-1)
	}
	q.busy = busy
}

// durable notes that everything before the offset next is durable in PostgreSQL.
func (q *queue) durable(next int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if next >= q.end {
		q.fetched = 0
		q.occupy(false)
	}
}

// delayed notes that the fetched records will not be durable soon.
func (q *queue) delayed() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.occupy(false)
}

func (q *queue) grow(n int) {
	q.bytes += n
	q.shared.held.Add(int64(n))
}

// remove moves up to limit records from the queue to the slice into. If the records are large, it
// moves fewer records, and none after hold. The second result is the epoch of these records.
func (q *queue) remove(into []*kgo.Record, limit int) ([]*kgo.Record, int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.held {
		return into, q.epoch
	}
	n := 0
	for bytes := 0; n < min(limit, len(q.records)) && bytes < chunkBytes; n++ {
		size := recordBytes(q.records[n])
		bytes += size
		q.grow(-size)
	}
	into = append(into, q.records[:n]...)
	clear(q.records[:n])
	q.records = q.records[n:]
	if len(q.records) == 0 {
		q.records = nil
	}
	if q.paused && !q.shared.tooBig(2*q.bytes) {
		q.paused = false
		q.shared.resume()
	}
	return into, q.epoch
}

// decoding notes that records of an epoch are being decoded, and how to end this. It returns false if
// they need not be decoded any more, because a new epoch has begun or hold was called.
func (q *queue) decoding(epoch int, obsolete context.CancelFunc) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.epoch != epoch || q.held {
		return false
	}
	q.obsolete = obsolete
	return true
}

// hold ends the decoding of the records that were removed, and keeps the other records until
// restart. The partition is stopped or paused, and its records will be read again.
func (q *queue) hold() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held = true
	q.outdate()
}

func (q *queue) outdate() {
	if q.obsolete != nil {
		q.obsolete()
		q.obsolete = nil
	}
}

// breakOff notes the reason why no more records arrive. Records that are put later are dropped.
func (q *queue) breakOff(broken *brokenOff) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		return
	}
	q.broken, q.ended = broken, true
	q.wake()
}

// removeBreak returns the reason why no more records arrive, and the epoch. It returns the reason
// only one time, and only after all records were removed. Otherwise it returns nil.
func (q *queue) removeBreak() (*brokenOff, int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.records) > 0 {
		return nil, q.epoch
	}
	broken := q.broken
	q.broken = nil
	return broken, q.epoch
}

func (q *queue) wake() {
	select {
	case q.arrived <- struct{}{}:
	default:
	}
}

// restart drops all records, begins a new epoch and resumes the partition.
func (q *queue) restart(epoch int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drop()
	q.outdate()
	q.epoch, q.paused, q.broken, q.ended, q.held = epoch, false, nil, false, false
	q.end = 0 // the log may have lost its end since the last fetch
	q.shared.resume()
}

func (q *queue) drop() {
	q.grow(-q.bytes)
	q.records = nil
	q.fetched = 0
	q.occupy(false)
}

// close frees the queue's memory and accepts no more records.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.drop()
}

// stableEnd returns the last stable offset that the fetches of this epoch have reported.
func (q *queue) stableEnd() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.end
}

// isPaused reports whether the partition is not fetched because the queue is full.
func (q *queue) isPaused() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.paused
}

// oldest returns the timestamp of the first record in the queue in ms, or 0 if the queue is empty.
func (q *queue) oldest() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.records) == 0 {
		return 0
	}
	return topic.TimestampOf(q.records[0])
}

// recordBytes approximates the memory of a fetched record.
func recordBytes(r *kgo.Record) int {
	const overhead = 256
	n := overhead + len(r.Key) + len(r.Value)
	for i := range r.Headers {
		n += 48 + len(r.Headers[i].Key) + len(r.Headers[i].Value)
	}
	return n
}
