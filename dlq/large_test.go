package dlq

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"projector/internal/devstack/devtest"
	"projector/internal/topic"
	"projector/projection"
	"projector/projection/event"
)

// noise returns bytes that cannot be compressed.
func noise(seed uint64, n int) []byte {
	random := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	b := make([]byte, n)
	_, _ = random.Read(b)
	return b
}

// newLimited returns a cluster whose DLQ topic accepts batches of at most limit bytes.
func newLimited(t *testing.T, partitions int32, limit int) *kfake.Cluster {
	t.Helper()
	cluster := newCluster(t)
	createTopic(t, cluster, deadTopic, partitions, map[string]*string{topic.MaxMessageBytes: new(fmt.Sprint(limit))})
	return cluster
}

// TestNeighboursOfALargeRecordSurvive shows that only a record that is too large alone is cut.
// Records that are too large only together are published whole.
func TestNeighboursOfALargeRecordSurvive(t *testing.T) {
	const n, limit = 60, 20_000
	for _, partitions := range []int32{1, 3} {
		t.Run(fmt.Sprint(partitions), func(t *testing.T) {
			cluster := newLimited(t, partitions, limit)
			all := letters(n)
			for i := range all {
				all[i].Record.Value = noise(uint64(i), 2000)
			}
			all[17].Record.Value = noise(17, 2*limit)
			requests := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: deadTopic, Observe: true, Count: -1})
			if err := newPublisher(t, cluster).Deliver(soon(t), NewDelivery(all, time.Now())); err != nil {
				t.Fatal(err)
			}
			if n := requests.Hits(); n > 45 {
				t.Errorf("%d requests: groups that fit should go together", n)
			}
			counts, last := published(t, cluster)
			for i := range int64(n) {
				if counts[i] != 1 {
					t.Errorf("source offset %d was published %d times", i, counts[i])
				}
				if e := last[i]; e.Truncated != (i == 17) || i != 17 && !bytes.Equal(e.Value, all[i].Record.Value) {
					t.Errorf("source offset %d: truncated %v, %d bytes", i, e.Truncated, len(e.Value))
				}
			}
			if e := last[17]; e.Value != nil || e.ValueBytes != 2*limit || string(e.Key) != "acc-17" {
				t.Errorf("the large one: value %v of %d bytes, key %q", e.Value != nil, e.ValueBytes, e.Key)
			}
		})
	}
}

func TestEveryRecordFitsInTheEnd(t *testing.T) {
	const limit = 4000
	big := noise(1, 2*limit)
	tests := []struct {
		name string
		give func(*projection.DeadLetter)
		left string
	}{
		{"large value", func(l *projection.DeadLetter) { l.Record.Value = big }, "value"},
		{"large header", func(l *projection.DeadLetter) { l.Record.Headers = []event.Header{{Key: "h", Value: big}} }, "value, headers"},
		{"large header key", func(l *projection.DeadLetter) { l.Record.Headers = []event.Header{{Key: string(big)}} }, "value, headers"},
		{"large key", func(l *projection.DeadLetter) { l.Record.Key = big }, "value, headers, key"},
		{"large correlation id", func(l *projection.DeadLetter) { l.CorrelationID = hex.EncodeToString(noise(2, 3*limit)) }, "value, headers"},
		{"everything large", func(l *projection.DeadLetter) {
			l.Record.Key, l.Record.Value, l.Record.Headers = big, big, []event.Header{{Key: "h", Value: big}}
			l.Message = string(big)
		}, "value, headers, key"},
	}
	cluster := newLimited(t, 1, limit)
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var log bytes.Buffer
			p := newPublisher(t, cluster)
			p.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			letter := letters(1)[0]
			letter.Record.Offset = int64(i)
			tt.give(&letter)
			if err := p.Deliver(soon(t), NewDelivery([]projection.DeadLetter{letter}, time.Now())); err != nil {
				t.Fatal(err)
			}
			counts, last := published(t, cluster)
			if counts[int64(i)] != 1 || !last[int64(i)].Truncated {
				t.Errorf("published %d times, truncated %v", counts[int64(i)], last[int64(i)].Truncated)
			}
			if want := "left_out=" + tt.left + " "; !strings.Contains(strings.ReplaceAll(log.String(), `"`, ""), want) {
				t.Errorf("log %q does not say %q", log.String(), want)
			}
		})
	}
}

// TestAsLargeAsTheTopicAccepts shows that the client does not refuse a record that the broker
// accepts.
func TestAsLargeAsTheTopicAccepts(t *testing.T) {
	cluster := newLimited(t, 1, 8<<20)
	letter := letters(1)[0]
	letter.Record.Value = noise(1, 7<<20)
	compressible := letters(2)[1]
	compressible.Record.Value = bytes.Repeat([]byte("again "), 10<<20/6)
	d := NewDelivery([]projection.DeadLetter{letter, compressible}, time.Now())
	if err := newPublisher(t, cluster).Deliver(soon(t), d); err != nil {
		t.Fatal(err)
	}
	last := assertPublishedOnce(t, cluster, 2)
	if !bytes.Equal(last[0].Value, letter.Record.Value) || !bytes.Equal(last[1].Value, compressible.Record.Value) {
		t.Errorf("values of %d and %d bytes came back", len(last[0].Value), len(last[1].Value))
	}
}

// TestLargeRecordsThatCompressWellCanBeRead publishes dead letters that are small enough for one batch
// when they are compressed. The batch would be too large for the commands, which decompress it.
func TestLargeRecordsThatCompressWellCanBeRead(t *testing.T) {
	cluster := newLimited(t, 1, 4<<20)
	const n = 20
	value := bytes.Repeat([]byte("again "), (topic.MaxBatchBytes/(n/2)+1<<20)/6)
	all := letters(n)
	for i := range all {
		all[i].Record.Value = value
	}
	if err := newPublisher(t, cluster).Deliver(soon(t), NewDelivery(all, time.Now())); err != nil {
		t.Fatal(err)
	}
	whole := 0
	for record, err := range topic.NewReader(devtest.Client(t, cluster.ListenAddrs()), deadTopic).Records(soon(t), topic.Scope{}) {
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(record.Value, value) {
			whole++
		}
	}
	if whole != n {
		t.Errorf("%d of %d were read whole", whole, n)
	}
}

// TestLargeRecordIsNotCutByOtherErrors shows that a large record is not cut if the broker then
// refuses it because of a missing permission.
func TestLargeRecordIsNotCutByOtherErrors(t *testing.T) {
	cluster := newLimited(t, 1, 8<<20)
	fault := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: deadTopic, Err: kerr.TopicAuthorizationFailed, Count: -1})
	letter := letters(1)[0]
	letter.Record.Value = noise(1, 2<<20)
	p, d := newPublisher(t, cluster), NewDelivery([]projection.DeadLetter{letter}, time.Now())
	if err := p.Deliver(soon(t), d); !errors.Is(err, kerr.TopicAuthorizationFailed) || d.Pending() != 1 {
		t.Fatalf("%v, %d pending", err, d.Pending())
	}
	fault.Remove()
	if err := p.Deliver(soon(t), d); err != nil {
		t.Fatal(err)
	}
	if e := assertPublishedOnce(t, cluster, 1)[0]; e.Truncated || len(e.Value) != 2<<20 {
		t.Errorf("truncated %v, %d bytes", e.Truncated, len(e.Value))
	}
}

// TestLargeRecordAndASilentBroker shows that the context also ends the wait for a large record, and
// that a later attempt succeeds.
func TestLargeRecordAndASilentBroker(t *testing.T) {
	cluster := newLimited(t, 1, 8<<20)
	arrived := make(chan struct{})
	cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		close(arrived)
		return nil, nil, true // no answer
	})
	letter := letters(1)[0]
	letter.Record.Value = noise(1, 2<<20)
	p, d := newPublisher(t, cluster), NewDelivery([]projection.DeadLetter{letter}, time.Now())
	ctx, cancel := context.WithCancel(soon(t))
	go func() {
		<-arrived
		cancel()
	}()
	if err := p.Deliver(ctx, d); !errors.Is(err, context.Canceled) || d.Pending() != 1 {
		t.Fatalf("%v, %d pending", err, d.Pending())
	}
	if err := p.Deliver(soon(t), d); err != nil || d.Pending() != 0 {
		t.Fatalf("%v, %d pending", err, d.Pending())
	}
	assertPublishedOnce(t, cluster, 1)
}

func TestTopicWithoutRoomForHeaders(t *testing.T) {
	cluster := newLimited(t, 1, 100)
	p, d := newPublisher(t, cluster), NewDelivery(letters(1), time.Now())
	err := p.Deliver(soon(t), d)
	if err == nil || !strings.Contains(err.Error(), topic.MaxMessageBytes) || d.Pending() != 1 {
		t.Fatalf("%v, %d pending", err, d.Pending())
	}
}

// TestCutDeadLettersAreLoggedOnceAMinute shows that all dead letters that are cut share one client
// and one log line a minute.
func TestCutDeadLettersAreLoggedOnceAMinute(t *testing.T) {
	const limit = 20 << 10
	var log bytes.Buffer
	p := newPublisher(t, newLimited(t, 1, limit))
	p.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	var first *kgo.Client
	for i := range 3 {
		some := letters(4)
		for j := range some {
			some[j].Record.Value = noise(1, 3*limit)
		}
		if err := p.Deliver(soon(t), NewDelivery(some, time.Now())); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = p.large.Load()
		}
	}
	if n := strings.Count(log.String(), "was cut"); n != 1 {
		t.Errorf("%d lines for 12 dead letters:\n%s", n, &log)
	}
	if first == nil || p.large.Load() != first {
		t.Error("each group has a client of its own")
	}
	if p.cuts.End(); strings.Count(log.String(), "was cut") != 2 || !strings.Contains(log.String(), "others=10") {
		t.Errorf("the line about the other 11 is not:\n%s", &log)
	}
}
