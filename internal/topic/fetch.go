package topic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"projector/errclass"
	"projector/internal/retry"
)

const (
	// fetchBytes limits the compressed size of one fetch. It is small, because the headers of dead
	// letters compress well. After decompression, they need many times as much memory. A broker
	// returns the first batch even if this batch is larger than fetchBytes.
	fetchBytes = 1 << 20
	// fewBytes is used instead of fetchBytes if only the first records are needed.
	fewBytes = 16 << 10
	// answerTimeout limits the time for one fetch, retries included. After this time a command
	// fails, because a command must not hang.
	answerTimeout = 20 * time.Second
	// defaultPause is how long a broker without data may delay its answer. It is also the pause
	// between two attempts.
	defaultPause = 250 * time.Millisecond
	// emptyAnswers is the number of answers without data after which a fetch concludes that there
	// is no data.
	emptyAnswers = 6
)

var (
	errNoData    = errors.New("the broker answers without data")
	errEndsEarly = errors.New("the broker's log ends before the last records: they are not replicated yet, or the log was cut back")
	errThrottled = errors.New("the broker throttles this client")
	errCutBack   = errors.New("the log ends before this offset now: it was cut back")
)

// fetcher fetches one range of a partition, answer by answer, from its leader.
type fetcher struct {
	reader *Reader
	span   Span // the offsets that still have to be read
	// patience is how long to retry when the partition has no leader that can be reached.
	patience  time.Duration
	silent    map[int32]error      // leaders that are not asked, and why; may be nil
	partition kadm.PartitionDetail // the last description from the brokers
	topicID   kadm.TopicID
	located   bool
}

// fetch returns the next records, possibly none. It moves span.From past all offsets that the
// answer covers, including the offsets of compacted and aborted records. If the leader is lost,
// fetch retries until patience has passed.
//
// Several answers without data mean that there are no records up to the end of the span, because
// the records were compacted. This requires that the broker's log reaches the end of the span. If it
// does not, a new leader may not know its high watermark yet, or the log was truncated. fetch then
// fails at the deadline. If span.Full is set, all answers without data are an error.
func (f *fetcher) fetch(ctx context.Context) ([]*kgo.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, f.reader.within)
	defer cancel()
	began, empty := time.Now(), 0
	var useless error // why the last answer was of no use
	// passing reports whether a retry may succeed, at another broker or at the same broker later.
	passing := func(err error) bool { return isUseless(err) || leaderless(err) && time.Since(began) < f.patience }
	var records []*kgo.Record
	err := retry.Bound{Pause: f.reader.pause, Passing: passing}.Do(ctx, func(ctx context.Context) (err error) {
		records, err = f.fetchOnce(ctx)
		f.located = f.located && err == nil
		if isUseless(err) {
			useless = err
		}
		if !f.span.Full && errors.Is(err, errNoData) {
			if empty++; empty == emptyAnswers {
				f.span.From = f.span.To
				return nil
			}
		}
		return err
	})
	if useless != nil && errors.Is(err, context.DeadlineExceeded) { // the broker does answer
		err = useless
	}
	return records, err
}

// isUseless reports whether a broker has answered, but not yet with records.
func isUseless(err error) bool {
	return errors.Is(err, errNoData) || errors.Is(err, errEndsEarly) || errors.Is(err, errThrottled)
}

func (f *fetcher) fetchOnce(ctx context.Context) ([]*kgo.Record, error) {
	if err := f.locate(ctx); err != nil {
		return nil, err
	}
	if err := f.silent[f.partition.Leader]; err != nil {
		return nil, err
	}
	answer, err := f.request(ctx)
	if err != nil {
		return nil, err
	}
	err = kerr.ErrorForCode(answer.ErrorCode)
	if errors.Is(err, kerr.OffsetOutOfRange) {
		return nil, f.skipToStart(ctx)
	}
	if err != nil {
		return nil, err
	}
	return f.decode(answer)
}

// leaderless reports whether err means that the partition's leader is down or is no longer the
// leader.
func leaderless(err error) bool {
	// The client does not retry a net.OpError at another broker.
	return kerr.IsRetriable(err) || kgo.IsRetryableBrokerErr(err) || errors.As(err, new(*net.OpError))
}

// decode returns the records of an answer, without aborted records. It moves span.From past all
// offsets of the answer.
func (f *fetcher) decode(answer *kmsg.FetchResponseTopicPartition) ([]*kgo.Record, error) {
	options := kgo.ProcessFetchPartitionOpts{
		Offset:         f.span.From,
		IsolationLevel: kgo.ReadCommitted(),
		Topic:          f.reader.topic,
		Partition:      f.span.Partition,
	}
	unpack, err := f.reader.unpack.open()
	if err != nil {
		return nil, err
	}
	decoded, next := kgo.ProcessFetchPartition(options, answer, unpack, nil)
	if large, is := errors.AsType[*kgo.ErrDecompressTooLarge](decoded.Err); is {
		return nil, f.reader.unpack.tooLarge(large.Offset, large.NextOffset-1)
	}
	if decoded.Err != nil {
		return nil, decoded.Err
	}
	switch {
	case next > f.span.From:
	case answer.LastStableOffset < f.span.To:
		return nil, errEndsEarly
	default:
		return nil, errNoData
	}
	f.span.From = next
	return decoded.Records, nil
}

// skipToStart continues at the current start of the log, because retention has deleted the records
// before it. If the log starts after the end of the span, nothing is left to read. If the log does
// not start after the next offset, it was truncated before that offset, which is an error.
func (f *fetcher) skipToStart(ctx context.Context) error {
	starts, err := f.reader.listed(ctx, f.reader.adm.ListStartOffsets)
	if err != nil {
		return err
	}
	start, known := starts[f.span.Partition]
	if start.Err != nil {
		return start.Err
	}
	if !known || start.Offset <= f.span.From {
		return errCutBack
	}
	f.span.From = start.Offset
	return nil
}

// locate requests the partition's leader and the topic's id from the brokers, unless they are
// already known.
func (f *fetcher) locate(ctx context.Context) error {
	if f.located {
		return nil
	}
	detail, exists, err := Describe(ctx, f.reader.adm, f.reader.topic)
	if err != nil {
		return err
	}
	partition, known := detail.Partitions[f.span.Partition]
	if !exists || !known {
		return errors.New("the partition was deleted while it was read")
	}
	f.partition = partition
	switch {
	case partition.Err != nil:
		return partition.Err
	case partition.Leader < 0:
		return kerr.LeaderNotAvailable
	}
	f.topicID, f.located = detail.ID, true
	return nil
}

func (f *fetcher) request(ctx context.Context) (*kmsg.FetchResponseTopicPartition, error) {
	partition := kmsg.NewFetchRequestTopicPartition()
	partition.Partition = f.span.Partition
	partition.FetchOffset = f.span.From
	partition.PartitionMaxBytes = fetchBytes
	if f.span.few {
		partition.PartitionMaxBytes = fewBytes
	}

	topic := kmsg.NewFetchRequestTopic()
	// The protocol version decides whether the name or the id is sent.
	topic.Topic, topic.TopicID = f.reader.topic, f.topicID
	topic.Partitions = []kmsg.FetchRequestTopicPartition{partition}

	request := kmsg.NewPtrFetchRequest()
	request.IsolationLevel = 1                                   // read_committed
	request.MaxWaitMillis = int32(f.reader.pause.Milliseconds()) //nolint:gosec // a fraction of a second
	request.MinBytes = 1
	request.MaxBytes = fetchBytes
	request.Topics = []kmsg.FetchRequestTopic{topic}

	response, err := request.RequestWith(ctx, f.reader.client.Broker(int(f.partition.Leader)))
	if err != nil {
		return nil, err
	}
	return f.answer(response)
}

// answer returns the partition's part of a response.
func (f *fetcher) answer(response *kmsg.FetchResponse) (*kmsg.FetchResponseTopicPartition, error) {
	if err := kerr.ErrorForCode(response.ErrorCode); err != nil {
		return nil, err
	}
	for i := range response.Topics {
		for j := range response.Topics[i].Partitions {
			p := &response.Topics[i].Partitions[j]
			if p.Partition != f.span.Partition {
				continue
			}
			if len(p.RecordBatches) == 0 && p.ErrorCode == 0 && response.ThrottleMillis > 0 {
				return nil, errThrottled // a client over its quota receives an answer without data
			}
			return p, nil
		}
	}
	if response.ThrottleMillis > 0 {
		return nil, errThrottled
	}
	return nil, fmt.Errorf("the answer to a fetch does not name partition %d", f.span.Partition)
}

// errNotAnswered means that the leader's answer does not contain a partition.
var errNotAnswered = errors.New("the answer does not name the partition")

// PartitionError says why one partition of a topic cannot be read. The other partitions may be
// readable.
type PartitionError struct {
	Topic     string
	Partition int32
	Err       error

	leader   int32   // -1 if there is none or it is not known
	replicas []int32 // brokers that may become leader; nil if not known
}

var _ errclass.Describer = (*PartitionError)(nil)

// unreadable returns a PartitionError. It names the brokers that could lead the partition.
func (r *Reader) unreadable(known kadm.PartitionDetail, partition int32, err error) *PartitionError {
	e := &PartitionError{Topic: r.topic, Partition: partition, Err: err, leader: known.Leader, replicas: known.ISR}
	if known.Err != nil {
		e.leader = -1
	}
	if len(e.replicas) == 0 {
		e.replicas = known.Replicas
	}
	return e
}

func (e *PartitionError) Error() string {
	return fmt.Sprintf("partition %d of topic %s: %s", e.Partition, e.Topic, e.Reason())
}

func (e *PartitionError) Unwrap() error { return e.Err }

// SafeText implements errclass.Describer.
func (e *PartitionError) SafeText() string { return e.Error() }

// Reason says why the partition cannot be read. If a broker may be the cause, the text also names
// the broker. The text does not contain the partition's number, so that partitions of the same
// broker can have the same reason.
func (e *PartitionError) Reason() string {
	why := errclass.Safe(e.Err)
	switch {
	case errors.Is(e.Err, kerr.LeaderNotAvailable):
		return kerr.LeaderNotAvailable.Message + ": no broker leads it; bring back " + brokers(e.replicas)
	case e.leader < 0 || !leaderless(e.Err) && !errors.Is(e.Err, context.DeadlineExceeded):
		return why
	default:
		return fmt.Sprintf("%s; broker %d leads it: bring that back if it is away", why, e.leader)
	}
}

// brokers formats a list of broker ids for a message.
func brokers(ids []int32) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = strconv.Itoa(int(id))
	}
	switch len(ids) {
	case 0:
		return "a broker that has a replica of it"
	case 1:
		return "broker " + names[0]
	default:
		return "one of the brokers " + strings.Join(names, ", ")
	}
}
