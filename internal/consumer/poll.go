package consumer

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"projector/errclass"
	"projector/projection"
)

const (
	pollRecords = 10_000
	// pollWithin limits the duration of one poll, because an idle poller must also report to the
	// watchdog.
	pollWithin = 5 * time.Second
	// seeksApart is the minimum time between two rounds of seeks. Each round makes the client drop
	// its fetches of all partitions. The pause collects the seeks of many partitions in one round,
	// because workers often claim at the same time. The client does not accept a seek before its
	// assignment is complete. Such a seek is repeated in the next round.
	seeksApart = 20 * time.Millisecond
)

// seek is a request to the poller to read a partition from an offset on.
type seek struct {
	w     *worker
	next  projection.NextOffset
	epoch int
}

// seek requests that the poller reads the worker's partition from an offset on. Only the poller
// sets the client's offsets. So all records that the poller dispatches after a seek belong to the
// new epoch.
func (c *Consumer) seek(w *worker, next projection.NextOffset, epoch int) {
	c.seeksMu.Lock()
	defer c.seeksMu.Unlock()
	// Only the last claim of a worker counts. If an older seek were executed later, the queue would
	// be in an older epoch, and the worker would drop its records.
	c.dropSeek(w)
	c.seeks = append(c.seeks, seek{w, next, epoch})
	if c.interrupt != nil {
		c.interrupt()
	}
}

// unseek drops the worker's seek if it was not executed yet, because the partition was stopped or
// paused. A seek resumes the fetching of its partition.
func (c *Consumer) unseek(w *worker) {
	c.seeksMu.Lock()
	defer c.seeksMu.Unlock()
	c.dropSeek(w)
}

// dropSeek drops the worker's pending seek. The caller holds seeksMu.
func (c *Consumer) dropSeek(w *worker) {
	c.seeks = slices.DeleteFunc(c.seeks, func(s seek) bool { return s.w == w })
}

// poll dispatches records to the workers until ctx ends. It never waits for a worker.
func (c *Consumer) poll(ctx context.Context) {
	for arrived := time.Now(); ctx.Err() == nil; {
		begin := c.beginPoll
		if time.Since(arrived) > restAfter {
			begin = c.rest
		}
		pollCtx, cancel := begin(ctx)
		fetches := c.cl.PollRecords(pollCtx, pollRecords)
		cancel()
		c.cfg.Health.Beat()
		fetches.EachError(c.dataLost)     // before the records, because these may come after the loss
		fetches.EachPartition(c.dispatch) // before other errors, because the records precede them
		fetches.EachError(c.fetchFailed)
		c.cl.AllowRebalance()
		if !fetches.Empty() || c.sought {
			arrived = time.Now()
		}
	}
}

// beginPoll executes the pending seeks and returns the context of the next poll.
func (c *Consumer) beginPoll(ctx context.Context) (context.Context, context.CancelFunc) {
	c.seeksMu.Lock()
	defer c.seeksMu.Unlock()
	c.sought = len(c.seeks) > 0
	if c.sought && time.Since(c.soughtAt) >= seeksApart {
		c.seeks = c.makeSeeks(c.seeks)
		c.soughtAt = time.Now()
	}
	within := pollWithin
	if len(c.seeks) > 0 {
		within = seeksApart - time.Since(c.soughtAt)
	}
	return c.interruptible(ctx, within)
}

// interruptible returns a context that ends when a worker requests a seek, but at the latest after
// the duration within. The caller holds seeksMu.
func (c *Consumer) interruptible(ctx context.Context, within time.Duration) (context.Context, context.CancelFunc) {
	ctx, c.interrupt = context.WithTimeout(ctx, within)
	return ctx, c.interrupt
}

// makeSeeks executes the seeks. It returns the seeks that the client did not accept because the
// partition is not yet assigned in the client.
func (c *Consumer) makeSeeks(seeks []seek) (later []seek) {
	// Seeks of revoked partitions are dropped.
	seeks = slices.DeleteFunc(seeks, func(s seek) bool { return c.worker(s.w.partition) != s.w })
	if len(seeks) == 0 {
		return nil
	}
	// The client ignores a seek to the position after the last record that it returned. But the
	// seek may be needed. After a loss of data, the client may fetch from another offset. After a
	// batch that is too large, it does not fetch at all. So each seek, except the first one of a
	// worker, is executed twice. The first execution uses an epoch that no record has, so that the
	// client does not ignore the seek.
	first, then := map[int32]kgo.EpochOffset{}, map[int32]kgo.EpochOffset{}
	for _, s := range seeks {
		if s.epoch > firstEpoch {
			first[s.w.partition] = kgo.EpochOffset{Epoch: noSuchEpoch, Offset: s.next.Offset}
		}
		then[s.w.partition] = kgo.EpochOffset{Epoch: s.next.LeaderEpoch, Offset: s.next.Offset}
	}
	topic := c.cfg.Topic
	c.cl.SetOffsets(map[string]map[int32]kgo.EpochOffset{topic: first})
	c.cl.SetOffsets(map[string]map[int32]kgo.EpochOffset{topic: then})
	accepted := c.cl.CommittedOffsets()[topic]
	for _, s := range seeks {
		if at, known := accepted[s.w.partition]; known && at.Offset == s.next.Offset {
			s.w.queue.restart(s.epoch)
		} else {
			later = append(later, s)
		}
	}
	return later
}

// firstEpoch is the epoch of a worker's first seek. Before this seek, nothing was fetched.
const firstEpoch = 1

// noSuchEpoch is an epoch that no record has. It also differs from the client's value for an
// unknown epoch.
const noSuchEpoch = -2

func (c *Consumer) dispatch(ftp kgo.FetchTopicPartition) {
	w := c.worker(ftp.Partition)
	if w == nil || ftp.Topic != c.cfg.Topic || len(ftp.Records) == 0 {
		return
	}
	w.queue.put(ftp.Records, ftp.LastStableOffset)
}

func (c *Consumer) pause(p int32) {
	c.cl.PauseFetchPartitions(map[string][]int32{c.cfg.Topic: {p}})
}

func (c *Consumer) resume(p int32) {
	c.cl.ResumeFetchPartitions(map[string][]int32{c.cfg.Topic: {p}})
}

// dataLost stops the reading of a partition whose log has lost records that were already consumed.
// Otherwise the client would continue at the new end of the log.
func (c *Consumer) dataLost(_ string, p int32, err error) {
	if w := c.worker(p); w != nil && errors.As(err, new(*kgo.ErrDataLoss)) {
		w.breakOff(err)
	}
}

func (c *Consumer) fetchFailed(topic string, p int32, err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, kgo.ErrClientClosed) ||
		errors.As(err, new(*kgo.ErrDataLoss)) { // dataLost handles it
		return
	}
	if topic == "" && p < 0 {
		// The client returns an error without a topic if a response was too large. After this
		// error, the client repeats the request and continues with the other partitions.
		err = c.batchTooLarge()
	}
	if w := c.worker(p); w != nil {
		w.breakOff(err)
	}
	err = c.cfg.Access.Consuming(err)
	c.cfg.Observer.Retry("kafka", errclass.Reason(err))
	c.throttled("kafka", "fetch records").Note(err, pollWithin)
	c.fetchFailedAt.Store(new(time.Now()))
	grace := stuckAfter
	if errclass.Kafka(err).Unready() {
		grace = 0
	}
	c.cfg.Health.FailAfter(fetchCondition, "Kafka: "+errclass.Safe(err), grace)
}

// commitSync commits on behalf of the given member id. It fails if the client has another member id
// now. Otherwise it returns the first error of the request or of a partition.
func (c *Consumer) commitSync(ctx context.Context, member string, offsets map[string]map[int32]kgo.EpochOffset) error {
	var result error
	ctx = kgo.PreCommitFnContext(ctx, func(request *kmsg.OffsetCommitRequest) error {
		if request.MemberID != member {
			return errOtherMember
		}
		return nil
	})
	c.cl.CommitOffsetsSync(ctx, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
		result = err
		if err != nil {
			return
		}
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil && result == nil {
					result = err
				}
			}
		}
	})
	return result
}

// tooBig reports whether a queue of this size is too large. A queue is too large if its size
// exceeds its share and all queues together exceed the limit. So a partition with many unread
// records may use the memory that other partitions do not need.
func (c *Consumer) tooBig(bytes int) bool {
	return int64(bytes) > c.queueShare.Load() && c.queued.Load() > int64(c.cfg.Limits.QueueBytes)
}

// minShare is the minimum memory of a partition, even if there are many partitions.
const minShare = 64 << 10

func (c *Consumer) shareMemoryAmong(partitions int) {
	n := max(1, partitions)
	c.partitions.Store(int64(partitions))
	c.queueShare.Store(int64(max(minShare, c.cfg.Limits.QueueBytes/n)))
	c.flushBytes.Store(int64(max(minShare, c.cfg.Limits.FlushBytes/n)))
	c.chunkRecords.Store(int64(min(max(chunkMemory/(chunksHeld*decodedBytes*n), leastChunk), mostChunk)))
}
