package consumer

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/dlq"
	"projector/projection"
	"projector/projection/event"
)

const (
	// mostChunk is how many records are decoded and judged at a time: enough to make
	// one query for their accounts worth its round trip. With many partitions there are
	// fewer of them in a chunk, so that all chunks together take chunkMemory.
	mostChunk   = 512
	leastChunk  = 64
	chunkMemory = 16 << 20
	// chunksHeld is how many chunks a partition has at once, at most.
	chunksHeld     = chunksAhead + 2
	judgeableBytes = int(unsafe.Sizeof(projection.Judgeable{}))
	// chunkBytes bounds a chunk of large records.
	chunkBytes = 1 << 20
	// chunksAhead is how many decoded chunks may wait while the worker flushes.
	chunksAhead = 2
)

// chunk is a run of decoded records, in order. next is the offset behind it:
// control records, which carry no event, move it too.
type chunk struct {
	records []projection.Judgeable
	next    int64
	epoch   int
	broken  string // why nothing follows; then there are no records
}

var chunkPool = sync.Pool{New: func() any { return new(chunk) }}

// release gives the chunk back. Its records must not be used any more.
func (c *chunk) release() {
	clear(c.records)
	c.records = c.records[:0]
	chunkPool.Put(c)
}

// decode turns the queue into chunks until ctx ends.
func decode(ctx context.Context, q *queue, format event.Format, limit *atomic.Int64, chunks chan<- *chunk) {
	var raw []*kgo.Record
	for {
		var epoch int
		raw, epoch = q.take(raw[:0], int(limit.Load()))
		var reason string
		if len(raw) == 0 {
			reason, epoch = q.takeBreak()
		}
		if len(raw) == 0 && reason == "" {
			select {
			case <-q.arrived:
				continue
			case <-ctx.Done():
				return
			}
		}
		c := decodeChunk(raw, format)
		c.epoch, c.broken = epoch, reason
		clear(raw)
		select {
		case chunks <- c:
		case <-ctx.Done():
			return
		}
	}
}

func decodeChunk(raw []*kgo.Record, format event.Format) *chunk {
	c := chunkPool.Get().(*chunk) //nolint:forcetypeassert // the pool holds nothing else
	c.records = slices.Grow(c.records, len(raw))
	for _, r := range raw {
		c.next = r.Offset + 1
		if r.Attrs.IsControl() {
			continue
		}
		c.records = append(c.records, projection.Judgeable{Record: FromKafka(r)})
		j := &c.records[len(c.records)-1]
		format.Decode(j.Record.Message, &j.Decoded)
	}
	return c
}

// FromKafka is the record as projections know it.
func FromKafka(r *kgo.Record) projection.Record {
	rec := projection.Record{
		Message:   event.Message{Key: r.Key, Value: r.Value},
		Topic:     r.Topic,
		Partition: r.Partition,
		Offset:    r.Offset,
		Timestamp: r.Timestamp.UnixMilli(),
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
