package consumer

import (
	"context"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/dlq"
	"projector/internal/topic"
	"projector/projection"
	"projector/projection/event"
)

const (
	// mostChunk is the largest number of records that are decoded and folded together. Large chunks
	// are better, because one query then reads many accounts. With many partitions, the chunks are
	// smaller, because all chunks together should use at most chunkMemory. But leastChunk records
	// are always allowed.
	mostChunk   = 512
	leastChunk  = 64
	chunkMemory = 16 << 20
	// chunksHeld is the largest number of chunks that a partition has at the same time.
	chunksHeld   = chunksAhead + 2
	decodedBytes = int(unsafe.Sizeof(projection.DecodedRecord{}))
	// chunkBytes limits the size of a chunk with large records.
	chunkBytes = 1 << 20
	// chunksAhead is how many decoded chunks may wait while the worker flushes.
	chunksAhead = 2
)

// chunk is a sequence of decoded records. The field next is the offset after the last record. The
// last record may be a control record, which is not in the field records.
type chunk struct {
	records []projection.DecodedRecord
	traced  []*kgo.Record // the records that are traced, see Trace
	next    projection.NextOffset
	epoch   int
	broken  *brokenOff // why no more records can be fetched; then the chunk has no records
}

var chunkPool = sync.Pool{New: func() any { return new(chunk) }}

// release clears the chunk and returns it to the pool. The caller must not use the chunk's records
// any more.
func (c *chunk) release() {
	clear(c.records)
	clear(c.traced)
	*c = chunk{records: c.records[:0], traced: c.traced[:0]}
	chunkPool.Put(c)
}

// decode decodes the queue's records into chunks until the worker must stop. While the method
// decode waits for the schema of a record, the worker can process the records before that record.
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
			if !w.sendChunk(c) {
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

// decodeAll decodes records that were fetched in one epoch (see queue). It ends early if the
// partition is stopped or paused, or is to be read from another position. Otherwise a record
// without an available schema would block the partition even after a person has set another
// position. It returns false if the worker must stop.
func (w *worker) decodeAll(raw []*kgo.Record, epoch int) bool {
	ctx, cancel := context.WithCancel(w.drain)
	defer cancel()
	if !w.queue.decoding(epoch, cancel) {
		return true
	}
	for len(raw) > 0 {
		began := time.Now()
		c, n, err := decodeChunk(ctx, raw, w.c.cfg.Formats, int(w.c.chunkRecords.Load()))
		took := time.Since(began)
		c.epoch = epoch
		c.traced = w.trace.Pick(c.traced, raw[:n])
		raw = raw[n:]
		if n == 0 {
			c.release()
		} else if !w.sendChunk(c) {
			return false
		}
		if err != nil && !w.awaitFormat(ctx, raw[0], took) {
			return w.drain.Err() == nil
		}
	}
	return true
}

// sendChunk sends a chunk to the worker. It returns false if the worker must stop.
func (w *worker) sendChunk(c *chunk) bool {
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

// decodeChunk decodes records until the chunk has at least as many records as the parameter most
// says. It ends earlier at a record whose schema is not available. The result n is the number of
// input records that are done, which includes control records.
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

// FromKafka converts a record from the type of the Kafka client.
func FromKafka(r *kgo.Record) projection.Record {
	rec := projection.Record{
		Message:     event.Message{Key: r.Key, Value: r.Value},
		Topic:       r.Topic,
		Partition:   r.Partition,
		LeaderEpoch: r.LeaderEpoch,
		Offset:      r.Offset,
		Timestamp:   topic.TimestampOf(r),
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
