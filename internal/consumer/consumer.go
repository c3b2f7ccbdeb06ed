package consumer

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/errclass"
	"projector/internal/retry"
)

// Consumer consumes one topic as a member of one consumer group.
type Consumer struct {
	cfg       Config
	cl        *kgo.Client
	adm       *kadm.Client
	committer *committer
	topic     topicInfo
	ready     chan struct{}      // closed when cl is set
	cutOff    context.CancelFunc // closes cl and ends its requests
	topicID   string             // id of the topic that cl consumes
	recreated context.CancelFunc // called when the topic has another id; ends the use of cl

	mu      sync.Mutex
	workers map[int32]*worker
	logs    map[string]*retry.Throttled
	letters deadLetterLog

	queued       atomic.Int64 // bytes in all queues
	busy         atomic.Int64 // counter for Busy
	queueShare   atomic.Int64 // bytes that each partition's queue may hold in any case
	partitions   atomic.Int64 // number of assigned partitions
	flushBytes   atomic.Int64 // bytes that may be pending for one partition
	chunkRecords atomic.Int64 // how many records are decoded and folded at a time

	// fetchFailedAt is the time of the last error from the client, or nil. It keeps the monotonic
	// clock, because the wall clock may be set back.
	fetchFailedAt atomic.Pointer[time.Time]
	// joinedAt is since when the client is a member of the group, or nil. A client that cannot join
	// the group returns an error only now and then.
	joinedAt atomic.Pointer[time.Time]

	seeksMu   sync.Mutex
	seeks     []seek
	interrupt context.CancelFunc // ends the current poll or pause
	sought    bool               // the poller had pending seeks at the last poll
	soughtAt  time.Time          // time of the last round of seeks
	idle      idle
}

// New prepares a consumer, but does not connect. It returns an error if the configuration is not
// valid.
func New(cfg Config) (*Consumer, error) {
	cfg.SessionTimeout = cmp.Or(cfg.SessionTimeout, 30*time.Second)
	if cfg.Trace == nil {
		cfg.Trace = func(int32) Trace { return untraced{} }
	}
	c := &Consumer{cfg: cfg, workers: map[int32]*worker{}, logs: map[string]*retry.Throttled{}, letters: newDeadLetterLog(cfg.Log), ready: make(chan struct{})}
	c.committer = newCommitter(c.commit, c.commitFailing)
	c.committer.member, c.committer.evicted = c.member, c.evicted
	c.shareMemoryAmong(1)
	if err := kgo.ValidateOpts(c.options()...); err != nil {
		return nil, fmt.Errorf("create the Kafka client: %w", err)
	}
	return c, nil
}

// Near the end of the topic, a broker answers a fetch when it has fetchBeat bytes (about twelve
// events) or when fetchWait has passed. As a result, many events share one fetch, one wake-up of a
// worker and one transaction. The measurements are in docs/decisions/0011. After a seek or a
// resume, a partition is first fetched when the current requests have returned.
const (
	fetchBeat = 3 << 10
	fetchWait = 10 * time.Millisecond // the minimum that the client accepts
)

// options returns the options of the client that is the group's member.
func (c *Consumer) options() []kgo.Opt {
	return append(slices.Concat(c.cfg.Client, c.cfg.Member),
		kgo.ConsumerGroup(c.cfg.Group),
		kgo.ConsumeTopics(c.cfg.Topic),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), // the position must also move past control records
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		// A new group begins at the first record. A position that is out of range is an error. In
		// that case, the client must not continue at the start or the end of the log.
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.AdjustFetchOffsetsFn(c.offsetsFetched),
		kgo.OnPartitionsAssigned(c.assigned),
		kgo.OnPartitionsRevoked(func(ctx context.Context, _ *kgo.Client, m map[string][]int32) { c.unassigned(ctx, m, false) }),
		kgo.OnPartitionsLost(func(ctx context.Context, _ *kgo.Client, m map[string][]int32) { c.unassigned(ctx, m, true) }),
		// FetchMaxBytes limits the memory of one fetch before decompression.
		kgo.FetchMaxBytes(int32(c.cfg.Limits.FetchBytes)), //nolint:gosec // G115: some MiB
		kgo.FetchMaxPartitionBytes(1<<20),
		kgo.MaxConcurrentFetches(2),
		// A broker always sends a whole batch. After decompression, a batch may be a thousand times
		// larger than before. The client stops the decompression at this limit and refuses the
		// batch.
		kgo.MaxDecompressBatchBytes(c.cfg.Limits.BatchBytes),
		kgo.BrokerMaxReadBytes(int32(max(c.cfg.Limits.BatchBytes, c.cfg.Limits.FetchBytes)+1<<20)), //nolint:gosec // G115: checked to be far below 2 GiB
		kgo.WithHooks(&c.idle),
		kgo.FetchMinBytes(fetchBeat),
		kgo.FetchMaxWait(fetchWait),
		kgo.SessionTimeout(c.cfg.SessionTimeout),
		kgo.HeartbeatInterval(c.cfg.SessionTimeout/10),
		kgo.RebalanceTimeout(60*time.Second),
	)
}

// Run waits for the topic and consumes it until ctx ends. When ctx ends, it flushes what is
// pending, commits and leaves the group. It returns an error only if the client could not be
// created. Other failures are retried, or they stop a partition.
//
// A client consumes a topic by its id and never changes to another id. If the topic was deleted and
// created again, Run replaces the client, as a restart of the process would do.
func (c *Consumer) Run(ctx context.Context) error {
	err := c.awaitTopic(ctx)
	for err == nil && ctx.Err() == nil {
		err = c.consume(ctx)
	}
	c.letters.lines.End()
	return err
}

// consume consumes as a member of the group until ctx ends or the topic's id changes.
func (c *Consumer) consume(ctx context.Context) error {
	life, cutOff := context.WithCancel(context.WithoutCancel(ctx))
	defer cutOff()
	cl, err := kgo.NewClient(append(c.options(), kgo.WithContext(life))...)
	if err != nil {
		return fmt.Errorf("create the Kafka client: %w", err)
	}
	c.cutOff = cutOff
	c.cl, c.adm = cl, kadm.NewClient(cl)
	c.joinedAt.Store(nil) // from now on, the client may call assigned
	close(c.ready)
	same, recreated := context.WithCancel(ctx)
	defer recreated()
	c.recreated = recreated
	background, stop := context.WithCancel(context.Background())
	var tasks sync.WaitGroup
	for _, task := range []func(context.Context){
		c.committer.run, c.watchPositions, c.watchOverdue, c.watchLag, c.watchTransactions, c.watchElsewhere, c.watchUnconsumed,
		c.watchKafka, c.watchAccess, c.watchDatabase, c.ensureDLQ,
		c.logDeadLetters,
	} {
		tasks.Go(func() { task(background) })
	}
	c.cfg.Health.Started()
	c.cfg.Health.FailAfter(fetchCondition, fmt.Sprintf("Kafka: not yet a member of group %s: its coordinator, or another member, has not answered", c.cfg.Group), stuckAfter)
	c.poll(same)
	if ctx.Err() != nil {
		c.cfg.Health.Stopping()
	}
	left := c.shutDown()
	stop()
	if ctx.Err() != nil {
		patiently(tasks.Wait, abandonAfter)
		return nil
	}
	// The tasks use this client, and the next client registers the same metrics.
	tasks.Wait()
	<-left
	c.ready = make(chan struct{})
	return nil
}

func (c *Consumer) worker(p int32) *worker {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.workers[p]
}

// Partitions returns the number of assigned partitions.
func (c *Consumer) Partitions() int { return int(c.partitions.Load()) }

// Busy returns the number of partitions with only few fetched records that are not durable yet, but
// probably will be soon. A partition does not count if more than fewRecords records were fetched
// since all fetched records were last durable. It also does not count while it publishes dead
// letters or retries an operation.
func (c *Consumer) Busy() int { return int(c.busy.Load()) }

// assignment lists the partitions that have a worker.
func (c *Consumer) assignment() []int32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.workers))
}

func (c *Consumer) condition(p int32) string { return fmt.Sprintf("partition %s/%d", c.cfg.Topic, p) }

func (c *Consumer) partitionLog(p int32) *slog.Logger {
	return c.cfg.Log.With("messaging.destination.name", c.cfg.Topic, "messaging.destination.partition.id", strconv.Itoa(int(p)))
}

// throttled returns the throttled log for one operation. All partitions share this log, so an
// outage is not logged for each partition.
func (c *Consumer) throttled(dependency, what string) *retry.Throttled {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := dependency + "/" + what
	t := c.logs[key]
	if t == nil {
		t = retry.Throttle(c.cfg.Log, what, "projector.dependency", dependency)
		c.logs[key] = t
	}
	return t
}

func (c *Consumer) commit(ctx context.Context, member string, offsets map[int32]int64) error {
	commit := make(map[int32]kgo.EpochOffset, len(offsets))
	for p, next := range offsets {
		commit[p] = kgo.EpochOffset{Epoch: -1, Offset: next}
	}
	return c.commitSync(ctx, member, map[string]map[int32]kgo.EpochOffset{c.cfg.Topic: commit})
}

// member returns this process's member id in the group.
func (c *Consumer) member() string {
	id, _ := c.cl.GroupMetadata()
	return id
}

// evicted is called if this process's member id has changed since the partition was claimed. It
// makes the worker claim the partition again.
func (c *Consumer) evicted(p int32) {
	if w := c.worker(p); w != nil {
		w.reclaim()
	}
}

// commitFailing receives the result of each flush of the committer. A failed commit loses nothing,
// because it is repeated. The position row decides where to resume.
func (c *Consumer) commitFailing(err error) {
	if err != nil {
		err = c.cfg.Access.Consuming(err)
		c.cfg.Observer.Retry("kafka", errclass.Reason(err))
	}
	c.throttled("kafka", "commit offsets").Note(err, c.committer.interval)
}
