package dlq

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"projector/internal/devstack/devtest"
	"projector/projection"
	"projector/projection/event"
)

func TestDeliverKeepsTheOriginalByteForByte(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(3, deadTopic))
	all := letters(3)
	all[0].Record.Headers = []event.Header{
		{Key: "b", Value: []byte{0, 1, 0xff}},
		{Key: "a", Value: nil},
		{Key: "b", Value: []byte{}},
		{Key: HeaderClass, Value: []byte("earlier")},
	}
	all[1].Record.Key, all[1].Record.Value = nil, []byte{}
	all[2].Record.Key = []byte{}

	if err := newPublisher(t, cluster).Deliver(soon(t), NewDelivery(all, time.Now())); err != nil {
		t.Fatal(err)
	}
	entries := assertPublishedOnce(t, cluster, 3)
	want := []event.Header{{Key: "b", Value: []byte{0, 1, 0xff}}, {Key: "a"}, {Key: "b", Value: []byte{}}}
	if !slices.EqualFunc(entries[0].Headers, want, func(a, b event.Header) bool { return a.Key == b.Key && same(a.Value, b.Value) }) {
		t.Errorf("headers %v, want %v", entries[0].Headers, want)
	}
	for i, letter := range all {
		if e := entries[int64(i)]; !same(e.Key, letter.Record.Key) || !same(e.Value, letter.Record.Value) {
			t.Errorf("letter %d: key %q, value %q", i, e.Key, e.Value)
		}
	}
}

func TestDeliverSendsOnlyTheRestAfterAPartialFailure(t *testing.T) {
	for _, refusal := range []*kerr.Error{kerr.NotEnoughReplicas, kerr.TopicAuthorizationFailed, kerr.NotEnoughReplicasAfterAppend} {
		t.Run(refusal.Message, func(t *testing.T) {
			t.Parallel()
			cluster := newCluster(t, kfake.SeedTopics(4, deadTopic))
			fault := cluster.Fault(kfake.Fault{
				Keys: []kmsg.Key{kmsg.Produce}, Topic: deadTopic, Partitions: []int32{1}, Err: refusal, Count: -1,
				When: func(kmsg.Request) bool { return true },
			})
			p, d := newPublisher(t, cluster), NewDelivery(letters(40), time.Now())

			err := p.Deliver(soon(t), d)
			if refusal != kerr.NotEnoughReplicasAfterAppend && !errors.Is(err, refusal) || err == nil {
				t.Fatalf("error %v, want %v", err, refusal)
			}
			pending := d.Pending()
			if pending == 0 || pending == d.Len() {
				t.Fatalf("%d of %d pending", pending, d.Len())
			}
			fault.Remove()
			before := endOffsets(t, cluster)
			if err := p.Deliver(soon(t), d); err != nil || d.Pending() != 0 {
				t.Fatalf("second attempt: %v, %d pending", err, d.Pending())
			}
			after := endOffsets(t, cluster)
			for partition, end := range after {
				want := before[partition]
				if partition == 1 {
					want += int64(pending)
				}
				if end != want {
					t.Errorf("partition %d ends at %d, want %d", partition, end, want)
				}
			}
		})
	}
}

func endOffsets(t *testing.T, cluster *kfake.Cluster) map[int32]int64 {
	t.Helper()
	listed, err := kadm.NewClient(devtest.Client(t, cluster.ListenAddrs())).ListEndOffsets(soon(t), deadTopic)
	if err != nil {
		t.Fatal(err)
	}
	ends := map[int32]int64{}
	listed.Each(func(o kadm.ListedOffset) { ends[o.Partition] = o.Offset })
	return ends
}

func TestDeliverWithNothingToSend(t *testing.T) {
	cluster := newCluster(t)
	if err := newPublisher(t, cluster).Deliver(soon(t), NewDelivery(nil, time.Now())); err != nil {
		t.Fatal(err)
	}
}

// TestDeliverReturnsWhenItsContextEnds shows that an attempt ends with its context. The broker
// answers later, and this acknowledgement still counts.
func TestDeliverReturnsWhenItsContextEnds(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(1, deadTopic))
	arrived, answer := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var requests atomic.Int32
	cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		requests.Add(1)
		once.Do(func() {
			close(arrived)
			cluster.SleepControl(func() { <-answer })
		})
		return nil, nil, false
	})
	p, d := newPublisher(t, cluster), NewDelivery(letters(1), time.Now())
	ctx, cancel := context.WithCancelCause(soon(t))
	revoked := errors.New("revoked")
	go func() {
		<-arrived
		cancel(revoked)
	}()
	if err := p.Deliver(ctx, d); !errors.Is(err, revoked) || d.Pending() != 1 {
		t.Fatalf("%v, %d pending", err, d.Pending())
	}
	// The broker has not answered yet, so only the context can end this attempt.
	ended, stop := context.WithCancel(t.Context())
	stop()
	if err := p.Deliver(ended, d); !errors.Is(err, context.Canceled) {
		t.Fatalf("with an ended context: %v", err)
	}
	close(answer)
	if err := p.Deliver(soon(t), d); err != nil || d.Pending() != 0 {
		t.Fatalf("%v, %d pending", err, d.Pending())
	}
	if requests.Load() != 1 {
		t.Errorf("the letter was sent %d times", requests.Load())
	}
	assertPublishedOnce(t, cluster, 1)
}

// TestPublishedNamesEachDeadLetterOnceByItsPlace shows that each dead letter is reported once, with
// its partition and offset. This also holds if a second attempt is needed.
func TestPublishedNamesEachDeadLetterOnceByItsPlace(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(3, deadTopic))
	fault := cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Produce}, Topic: deadTopic, Partitions: []int32{1}, Err: kerr.NotEnoughReplicas, Count: -1,
		When: func(kmsg.Request) bool { return true },
	})
	p := newPublisher(t, cluster)
	var mu sync.Mutex
	reported := map[int64][]Published{} // by source offset
	p.cfg.Published = func(one Published) {
		mu.Lock()
		defer mu.Unlock()
		reported[one.Offset] = append(reported[one.Offset], one)
	}
	at := time.Now()
	d := NewDelivery(letters(40), at)
	if err := p.Deliver(soon(t), d); err == nil {
		t.Fatal("all were published")
	}
	fault.Remove()
	deliverAtLast(t, p, d)
	places := assertPublishedOnce(t, cluster, 40)
	mu.Lock()
	defer mu.Unlock()
	for offset := range int64(40) {
		entry := places[offset]
		want := Published{
			FailedAt: at, Class: event.VersionGap, DLQPartition: entry.DLQPartition, DLQOffset: entry.DLQOffset,
			Topic: sourceTopic, Offset: offset,
		}
		if got := reported[offset]; len(got) != 1 || got[0] != want {
			t.Errorf("source offset %d: reported %+v, want %+v once", offset, got, want)
		}
	}
}

// TestDeliverDoesNotDisturbOtherDeliveries shows that a cancelled attempt does not end another
// attempt for the same partition.
func TestDeliverDoesNotDisturbOtherDeliveries(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(1, deadTopic))
	arrived, answer := make(chan struct{}), make(chan struct{})
	var once sync.Once
	cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		once.Do(func() {
			close(arrived)
			cluster.SleepControl(func() { <-answer })
		})
		return nil, nil, false
	})
	p := newPublisher(t, cluster)
	all := letters(2)
	ctx, cancel := context.WithCancel(soon(t))
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- p.Deliver(ctx, NewDelivery(all[:1], time.Now())) }()
	<-arrived
	go func() { second <- p.Deliver(soon(t), NewDelivery(all[1:], time.Now())) }()
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the first: %v", err)
	}
	close(answer)
	if err := <-second; err != nil {
		t.Errorf("the second: %v", err)
	}
}

func TestDecidedAgainKeepsWhatIsAcknowledged(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(1, deadTopic))
	p, all := newPublisher(t, cluster), letters(4)
	d := NewDelivery(all[:3], time.Now())
	if err := p.Deliver(soon(t), d); err != nil {
		t.Fatal(err)
	}
	other := all[1]
	other.Class = event.RejectedByDatabase
	d = d.DecidedAgain([]projection.DeadLetter{all[0], other, all[3]}, time.Now())
	if d.Len() != 3 || d.Pending() != 2 {
		t.Fatalf("%d of %d pending", d.Pending(), d.Len())
	}
	if err := p.Deliver(soon(t), d); err != nil {
		t.Fatal(err)
	}
	counts, last := published(t, cluster)
	if counts[0] != 1 || counts[1] != 2 || counts[2] != 1 || counts[3] != 1 || last[1].Class != event.RejectedByDatabase {
		t.Errorf("published %v, second class %s", counts, last[1].Class)
	}
}

// After an unclean leader election, another record has the offset of a record whose dead letter was
// published. Its dead letter must be published, too.
func TestAnotherRecordAtTheSameOffsetHasItsOwnDeadLetter(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(1, deadTopic))
	p, all := newPublisher(t, cluster), letters(4)
	all[3].Record.Headers = []event.Header{{Key: "id", Value: []byte("an event")}} // of Debezium, for example
	d := NewDelivery(all, time.Now())
	if err := p.Deliver(soon(t), d); err != nil {
		t.Fatal(err)
	}
	d = d.DecidedAgain(all[:1], time.Now())
	again := letters(4)
	again[3].Record.Headers = []event.Header{{Key: "id", Value: []byte("another event")}}
	again[1].Record.Value = []byte("another value")
	again[2].Record.Key = []byte("another key")
	d = d.DecidedAgain(again, time.Now())
	if err := p.Deliver(soon(t), d); err != nil {
		t.Fatal(err)
	}
	counts, last := published(t, cluster)
	if counts[0] != 1 || counts[1] != 2 || counts[2] != 2 || counts[3] != 2 || string(last[1].Value) != "another value" || string(last[2].Key) != "another key" {
		t.Errorf("published %v, the last ones %q and %q", counts, last[1].Value, last[2].Key)
	}
}

// To find the row that PostgreSQL refuses, the worker processes smaller and smaller parts of the
// batch. The test shows that no dead letter is published again because of that.
func TestASmallerBatchForgetsNothing(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(1, deadTopic))
	p, all := newPublisher(t, cluster), letters(4)
	d := NewDelivery(all, time.Now())
	for _, part := range [][]projection.DeadLetter{all, all[:2], all[:1]} {
		d = d.DecidedAgain(part, time.Now())
		if err := p.Deliver(soon(t), d); err != nil {
			t.Fatal(err)
		}
	}
	passed := all[3].Record.Ref()
	d = d.Done(passed).DecidedAgain(all[1:], time.Now())
	if d.Pending() != 0 {
		t.Errorf("%d would be published again", d.Pending())
	}
	again := d.Done(passed).DecidedAgain(all[1:], time.Now()) // the last record still has unprocessed entries
	if again.Pending() != 2 {
		t.Errorf("%d would be published again, want those of the two records that are passed", again.Pending())
	}
	passed.Offset++
	if rest := d.Done(passed); rest != nil {
		t.Error("something is remembered of a batch that is durable")
	}
	assertPublishedOnce(t, cluster, 4)
}

// TestDeliverAfterTheTopicAppears shows that a missing topic is a normal error that is retried.
func TestDeliverAfterTheTopicAppears(t *testing.T) {
	cluster := newCluster(t)
	p, d := newPublisher(t, cluster), NewDelivery(letters(5), time.Now())
	if err := p.Deliver(soon(t), d); !errors.Is(err, kerr.UnknownTopicOrPartition) || d.Pending() != 5 {
		t.Fatalf("%v, %d pending", err, d.Pending())
	}
	createTopic(t, cluster, deadTopic, 2, nil)
	deliverAtLast(t, p, d)
	assertPublishedOnce(t, cluster, 5)
}

// TestDeliverAfterTheTopicWasRecreated shows that the client does not continue with the id and the
// partitions of the deleted topic. Records that the new topic accepted while the client had the old
// id may be published twice.
func TestDeliverAfterTheTopicWasRecreated(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(8, deadTopic))
	p := newPublisher(t, cluster)
	if err := p.Deliver(soon(t), NewDelivery(letters(50), time.Now())); err != nil {
		t.Fatal(err)
	}
	if _, err := kadm.NewClient(devtest.Client(t, cluster.ListenAddrs())).DeleteTopic(soon(t), deadTopic); err != nil {
		t.Fatal(err)
	}
	createTopic(t, cluster, deadTopic, 2, nil)
	deliverAtLast(t, p, NewDelivery(letters(50), time.Now()))
	if counts, _ := published(t, cluster); len(counts) != 50 {
		t.Errorf("%d of 50 were published", len(counts))
	}
}

// deliverAtLast retries like a worker, but without pauses.
func deliverAtLast(t *testing.T, p *Publisher, d *Delivery) {
	t.Helper()
	ctx := soon(t)
	for {
		err := p.Deliver(ctx, d)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

func TestDeliverFailsWithoutABroker(t *testing.T) {
	cluster := newCluster(t)
	addrs := cluster.ListenAddrs()
	cluster.Close()
	p, err := NewPublisher(PublisherConfig{Topic: deadTopic, Client: []kgo.Opt{kgo.SeedBrokers(addrs...)}, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	d := NewDelivery(letters(2), time.Now())
	if err := p.Deliver(soon(t), d); err == nil || d.Pending() != 2 {
		t.Fatalf("%v, %d pending", err, d.Pending())
	}
}

func TestNewPublisherRefusesBadConfig(t *testing.T) {
	if _, err := NewPublisher(PublisherConfig{}); err == nil {
		t.Error("without a topic")
	}
	if _, err := NewPublisher(PublisherConfig{Topic: "t", Timeout: time.Millisecond}); err == nil {
		t.Error("with a time-out the client refuses")
	}
}
