package consumer

import (
	"context"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/dlq"
	"projector/projection"
	"projector/projection/event"
)

const (
	// mostChunk is how many records are decoded and folded at a time: enough to make
	// one query for their accounts worth its round trip. With many partitions there are
	// fewer of them in a chunk, so that all chunks together take chunkMemory.
	mostChunk   = 512
	leastChunk  = 64
	chunkMemory = 16 << 20
	// chunksHeld is how many chunks a partition has at once, at most.
	chunksHeld   = chunksAhead + 2
	decodedBytes = int(unsafe.Sizeof(projection.DecodedRecord{}))
	// chunkBytes bounds a chunk of large records.
	chunkBytes = 1 << 20
	// chunksAhead is how many decoded chunks may wait while the worker flushes.
	chunksAhead = 2
)

// chunk is a run of decoded records, in order. next is the offset after it:
// control records, which carry no event, move it too.
type chunk struct {
	records []projection.DecodedRecord
	traced  []*kgo.Record // those of the records that are followed, see Trace
	next    projection.NextOffset
	epoch   int
	broken  *brokenOff // why nothing follows; then there are no records
}

var chunkPool = sync.Pool{New: func() any { return new(chunk) }}

// release gives the chunk back, as good as new. Its records must not be used any more.
func (c *chunk) release() {
	clear(c.records)
	clear(c.traced)
	*c = chunk{records: c.records[:0], traced: c.traced[:0]}
	chunkPool.Put(c)
}

// decode turns the queue into chunks until the worker is to stop. Records before one that
// cannot be decoded yet are processed meanwhile.
func (w *worker) decode() {
	var raw []*kgo.Record
	for {
		var epoch int
		raw, epoch = w.queue.remove(raw[:0], int(w.c.chunkRecords.Load()))
		if len(raw) > 0 {
			if !w.decodeAll(raw, epoch) {
				return
			}
			clear(raw)
			continue
		}
		broken, epoch := w.queue.removeBreak()
		if broken != nil {
			c := newChunk()
			c.epoch, c.broken = epoch, broken
			if !w.hand(c) {
				return
			}
			continue
		}
		select {
		case <-w.queue.arrived:
		case <-w.drain.Done():
			return
		}
	}
}

// decodeAll decodes records of an epoch; false when the worker is to stop.
func (w *worker) decodeAll(raw []*kgo.Record, epoch int) bool {
	for len(raw) > 0 {
		c, n, err := decodeChunk(w.drain, raw, w.c.cfg.Formats, int(w.c.chunkRecords.Load()))
		c.epoch = epoch
		c.traced = w.trace.Pick(c.traced, raw[:n])
		raw = raw[n:]
		if n == 0 {
			c.release()
		} else if !w.hand(c) {
			return false
		}
		if err != nil && !w.awaitFormat(raw[0]) {
			return false
		}
	}
	return true
}

// hand gives the worker a chunk; false when it is to stop.
func (w *worker) hand(c *chunk) bool {
	select {
	case w.chunks <- c:
		return true
	case <-w.drain.Done():
		return false
	}
}

func newChunk() *chunk {
	return chunkPool.Get().(*chunk) //nolint:forcetypeassert // the pool holds nothing else
}

// decodeChunk decodes records until most events are decoded, or up to the first record that
// cannot be read yet, and returns how many records those are.
func decodeChunk(ctx context.Context, raw []*kgo.Record, formats event.Resolver, most int) (c *chunk, n int, err error) {
	c = newChunk()
	c.records = slices.Grow(c.records, len(raw))
	for n, r := range raw {
		if r.Attrs.IsControl() {
			c.next = projection.NextOffset{Offset: r.Offset + 1, LeaderEpoch: r.LeaderEpoch}
			continue
		}
		record := FromKafka(r)
		format, err := formats.Resolve(ctx, record.Message)
		if err != nil {
			return c, n, err
		}
		c.next = record.Next()
		if c.records = projection.AppendDecoded(c.records, record, format); len(c.records) >= most {
			return c, n + 1, nil
		}
	}
	return c, len(raw), nil
}

// TimestampOf is the time of a record in milliseconds since the Unix epoch, see
// projection.NoTimestamp and LastTimestamp. The client multiplies the milliseconds of
// the wire by 1,000,000 to have nanoseconds, and that wraps around for what lies beyond
// the year 2262 or before 1677. The original is lost then, but that it has wrapped
// shows in all but one of 15,625 cases: the result is no whole number of milliseconds.
func TimestampOf(r *kgo.Record) int64 {
	switch {
	case r.Timestamp.IsZero(): // the message format of Kafka 0.9 has no time
		return projection.NoTimestamp
	case r.Timestamp.Nanosecond()%int(time.Millisecond) != 0:
		return projection.LastTimestamp
	}
	return r.Timestamp.UnixMilli()
}

// FromKafka is the record as projections know it.
func FromKafka(r *kgo.Record) projection.Record {
	rec := projection.Record{
		Message:     event.Message{Key: r.Key, Value: r.Value},
		Topic:       r.Topic,
		Partition:   r.Partition,
		LeaderEpoch: r.LeaderEpoch,
		Offset:      r.Offset,
		Timestamp:   TimestampOf(r),
	}
	if len(r.Headers) > 0 {
		rec.Headers = make([]event.Header, len(r.Headers))
		for i, h := range r.Headers {
			rec.Headers[i] = event.Header{Key: h.Key, Value: h.Value}
		}
		rec.Replays = dlq.ReplaysOf(rec.Headers)
	}
	return rec
}
