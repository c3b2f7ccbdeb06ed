package consumer

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"projector/errclass"
)

const (
	pollRecords = 10_000
	// pollWithin bounds one poll, so that the watchdog hears of an idle poller too.
	pollWithin = 5 * time.Second
	// seekRetry is how soon a seek is tried again that the client did not take,
	// because the assignment is still under way in it.
	seekRetry = 20 * time.Millisecond
)

// seek asks the poller to read a partition from an offset on.
type seek struct {
	w      *worker
	offset int64
	epoch  int
}

// seek makes the poller restart the worker's queue at offset. Only the poller
// moves the client's offsets: what it hands over afterwards belongs to the epoch.
func (c *Consumer) seek(w *worker, offset int64, epoch int) {
	c.seeksMu.Lock()
	defer c.seeksMu.Unlock()
	c.seeks = append(c.seeks, seek{w, offset, epoch})
	if c.interrupt != nil {
		c.interrupt()
	}
}

// poll hands records to the workers until ctx ends. It never waits for a worker.
func (c *Consumer) poll(ctx context.Context) {
	for ctx.Err() == nil {
		pollCtx, cancel := c.beginPoll(ctx)
		fetches := c.cl.PollRecords(pollCtx, pollRecords)
		cancel()
		c.cfg.Health.Beat()
		fetches.EachPartition(c.dispatch) // first: a partition may have records and an error behind them
		fetches.EachError(c.fetchFailed)
		c.cl.AllowRebalance()
	}
}

// beginPoll makes the seeks that are asked for and answers the context of the next poll.
func (c *Consumer) beginPoll(ctx context.Context) (context.Context, context.CancelFunc) {
	c.seeksMu.Lock()
	defer c.seeksMu.Unlock()
	var later []seek
	for _, s := range c.seeks {
		if !c.makeSeek(s) {
			later = append(later, s)
		}
	}
	c.seeks = later
	within := pollWithin
	if len(later) > 0 {
		within = seekRetry
	}
	pollCtx, cancel := context.WithTimeout(ctx, within)
	c.interrupt = cancel
	return pollCtx, cancel
}

// makeSeek reports false when the client does not know the partition yet.
func (c *Consumer) makeSeek(s seek) bool {
	if c.worker(s.w.partition) != s.w {
		return true // revoked meanwhile
	}
	topic, p := c.cfg.Topic, s.w.partition
	c.cl.SetOffsets(map[string]map[int32]kgo.EpochOffset{topic: {p: {Epoch: -1, Offset: s.offset}}})
	if at, known := c.cl.CommittedOffsets()[topic][p]; !known || at.Offset != s.offset {
		return false
	}
	s.w.queue.restart(s.epoch)
	return true
}

// dispatch hands a partition's records to its worker.
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

// fetchFailed tells of an error the client does not get over by itself.
func (c *Consumer) fetchFailed(topic string, p int32, err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, kgo.ErrClientClosed) {
		return
	}
	if topic == "" && p < 0 {
		// The client's way to say that an answer was larger than it may be. It does
		// not say of which partition, asks again, and goes on with the others meanwhile.
		err = batchTooLarge{c.cfg.Limits.BatchBytes}
	}
	if w := c.worker(p); w != nil {
		w.breakOff(err)
	}
	err = c.explain(err)
	c.cfg.Observer.Retry("kafka", errclass.Reason(err))
	c.throttled("kafka", "fetch records").Failing(err, 1, 0, pollWithin)
	c.fetchFailedAt.Store(time.Now().UnixNano())
	grace := stuckAfter
	if errclass.Kafka(err).Unready() {
		grace = 0
	}
	c.cfg.Health.FailAfter("fetch", "Kafka: "+errclass.Safe(err), grace)
}

// commitSync commits under the id member and no other, and answers the first error,
// of the request or of a partition.
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

// tooBig reports whether a partition's queue holds too much: more than its share,
// while all together hold more than they may. A partition that is behind alone may
// use what the others do not need.
func (c *Consumer) tooBig(bytes int) bool {
	return int64(bytes) > c.queueShare.Load() && c.queued.Load() > int64(c.cfg.Limits.QueueBytes)
}

// minShare lets each partition hold something, however many there are.
const minShare = 64 << 10

// shareMemoryAmong divides the memory among partitions.
func (c *Consumer) shareMemoryAmong(partitions int) {
	n := max(1, partitions)
	c.partitions.Store(int64(partitions))
	c.queueShare.Store(int64(max(minShare, c.cfg.Limits.QueueBytes/n)))
	c.flushBytes.Store(int64(max(minShare, c.cfg.Limits.FlushBytes/n)))
	c.chunkRecords.Store(int64(min(max(chunkMemory/(chunksHeld*judgeableBytes*n), leastChunk), mostChunk)))
}
