package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"projector/internal/testbank"
	"projector/internal/testbank/compare"
)

// produce appends records to the topic in order. Records that belong to a transaction are produced
// in a transaction.
func (w *world) produce(records []testbank.Record) {
	w.t.Helper()
	if err := w.tryProduce(w.t.Context(), records); err != nil {
		w.t.Fatalf("produce: %v", err)
	}
}

func (w *world) tryProduce(ctx context.Context, records []testbank.Record) error {
	plain, err := kgo.NewClient(w.producer()...)
	if err != nil {
		return err
	}
	defer plain.Close()
	for len(records) > 0 {
		transaction := records[0].Transaction
		n := slices.IndexFunc(records, func(r testbank.Record) bool { return r.Transaction != transaction })
		if n < 0 {
			n = len(records)
		}
		if transaction == 0 {
			err = w.send(ctx, plain, records[:n])
		} else {
			err = w.transact(ctx, records[:n])
		}
		if err != nil {
			return err
		}
		records = records[n:]
	}
	return nil
}

func (w *world) producer() []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(w.addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MaxBufferedRecords(100_000), kgo.ProducerBatchMaxBytes(900_000),
	}
}

// send produces records and waits until all of them are acknowledged.
func (w *world) send(ctx context.Context, client *kgo.Client, records []testbank.Record) error {
	failed := make(chan error, len(records))
	for _, r := range records {
		record := &kgo.Record{Topic: w.topic, Partition: r.Partition, Key: r.Key, Value: r.Value}
		for _, h := range r.Headers {
			record.Headers = append(record.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
		client.Produce(ctx, record, func(_ *kgo.Record, err error) {
			if err != nil {
				failed <- err
			}
		})
	}
	err := client.Flush(ctx)
	select {
	case first := <-failed:
		err = errors.Join(first, err)
	default:
	}
	return err
}

func (w *world) transact(ctx context.Context, records []testbank.Record) error {
	id := kgo.TransactionalID(fmt.Sprintf("%s-%d", w.topic, records[0].Transaction))
	client, err := kgo.NewClient(append(w.producer(), id)...)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.BeginTransaction(); err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	if err := w.send(ctx, client, records); err != nil {
		return err
	}
	if err := client.EndTransaction(ctx, kgo.TransactionEndTry(!records[0].Abort)); err != nil {
		return fmt.Errorf("end a transaction: %w", err)
	}
	return nil
}

// feed produces records in the background, in chunks. The returned function waits until all records
// are produced.
func (w *world) feed(records []testbank.Record, chunk int, every time.Duration) (finish func()) {
	failed := make(chan error, 1)
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		client, err := kgo.NewClient(w.producer()...)
		if err != nil {
			failed <- err
			return
		}
		defer client.Close()
		for rest := records; len(rest) > 0 && err == nil; rest = rest[min(chunk, len(rest)):] {
			<-tick.C
			err = w.send(w.t.Context(), client, rest[:min(chunk, len(rest))])
		}
		failed <- err
	}()
	return func() {
		w.t.Helper()
		if err := <-failed; err != nil {
			w.t.Fatalf("produce: %v", err)
		}
	}
}

// ends returns the end offsets of a topic's partitions. The result is empty if the topic does not
// exist.
func (w *world) ends(topic string) map[int32]int64 {
	w.t.Helper()
	var ends map[int32]int64
	await(w.t, "the end offsets of "+topic, func() (failure string) { // on a busy machine, a partition may have no leader for a moment
		var err error
		if ends, err = compare.Ends(w.t.Context(), w.admin, topic); err != nil {
			failure = err.Error()
		}
		return failure
	})
	return ends
}

// read returns all committed records of a topic.
func (w *world) read(topic string) []testbank.Record {
	w.t.Helper()
	w.ends(topic) // waits until all partitions have a leader
	return must(compare.ReadTopic(w.t.Context(), topic, kgo.SeedBrokers(w.addrs...)))(w.t)
}

// recordsFrom returns the records whose offsets are at or after the given end offsets.
func recordsFrom(records []testbank.Record, ends map[int32]int64) []testbank.Record {
	return slices.DeleteFunc(records, func(r testbank.Record) bool { return r.Offset < ends[r.Partition] })
}

// The method committed returns the group's offsets in Kafka.
func (w *world) committed() map[int32]int64 {
	w.t.Helper()
	return must(w.reader().Committed(w.t.Context(), w.admin))(w.t)
}

// must returns a function that returns v, or fails the test if err is not nil.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// evict removes the members of the group at once. Otherwise the test would wait 30 s until
// the sessions of killed members time out.
func (w *world) evict() {
	w.t.Helper()
	groups, err := w.admin.DescribeGroups(w.t.Context(), w.group)
	if err != nil {
		w.t.Fatalf("describe the group: %v", err)
	}
	request := kmsg.NewPtrLeaveGroupRequest()
	request.Group = w.group
	for _, m := range groups[w.group].Members {
		member := kmsg.NewLeaveGroupRequestMember()
		member.MemberID = m.MemberID
		request.Members = append(request.Members, member)
	}
	if len(request.Members) == 0 {
		return
	}
	if _, err := request.RequestWith(w.t.Context(), w.kafka); err != nil {
		w.t.Fatalf("evict the killed members: %v", err)
	}
}

func (w *world) createTopic(t testing.TB, topic string, partitions int32, configs map[string]*string) {
	t.Helper()
	if _, err := w.admin.CreateTopic(t.Context(), partitions, -1, configs, topic); err != nil {
		t.Fatalf("create topic %s: %v", topic, err)
	}
}
