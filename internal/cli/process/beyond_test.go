package process

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/devstack/devtest"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel/accountdb"
	"projector/readmodel/balance"
)

func waitingEvent(version, offset int64, class event.Class, bytes int) *projection.Parked {
	p := &projection.Parked{Class: class}
	p.Decoded.Identity = event.Identified
	p.Decoded.Event.Version, p.Record.Offset, p.Record.Value = version, offset, make([]byte, bytes)
	return p
}

// receive passes an event to w, as the method read of beyond does.
func receive(w *waiting, p *projection.Parked) {
	if w.wants(&projection.DecodedRecord{Record: p.Record, Decoded: p.Decoded}) {
		w.add(p)
	}
}

// TestTheFirstEventsAreParked shows that the events with the lowest versions are parked up to the
// limits. The field rest says from which offset the other events must be read.
func TestTheFirstEventsAreParked(t *testing.T) {
	const events = beyondEvents + 500
	w := &waiting{above: 4}
	for _, i := range rand.Perm(events) {
		receive(w, waitingEvent(int64(5+i), int64(100+i), event.VersionGap, 10))
	}
	of := &accountdb.Beyond{BeyondRange: accountdb.BeyondRange{FirstOffset: 100, FirstVersion: 5, Highest: 4 + events, Events: events}}
	rest := w.left(of, 100)
	if n := len(w.first); n != beyondEvents || w.first[0].Decoded.Event.Version != 5 || w.first[n-1].Decoded.Event.Version != 4+beyondEvents {
		t.Errorf("%d are parked", n)
	}
	if rest.Events != 500 || rest.FirstVersion != 5+beyondEvents || rest.FirstOffset != 100+beyondEvents || rest.Lowest != rest.FirstVersion || rest.Highest != 4+events {
		t.Errorf("rest %+v", rest)
	}
	// An event of a higher version, at an offset before the other events that are left, was
	// discarded. The next reading does not see it, and must not count it as a lost event.
	discarded := waitingEvent(5+events, 99, event.VersionGap, 10)
	w.wants(&projection.DecodedRecord{Record: discarded.Record, Decoded: discarded.Decoded, Discarded: true})
	if w.highestAt != 99 {
		t.Errorf("the highest event is at %d", w.highestAt)
	}
	of.Highest++
	if after := w.left(of, 100); after != rest {
		t.Errorf("rest %+v after a discard", after)
	}
	large := &waiting{}
	for v := range int64(5) {
		receive(large, waitingEvent(v+1, v, event.VersionGap, beyondBytes))
	}
	if len(large.first) != 1 || large.rest.Events != 4 {
		t.Errorf("%d large events are parked, %d are left", len(large.first), large.rest.Events)
	}
}

// TestOneEventOfAVersionIsParked shows that the first event of a version is parked, unless only the
// second can be applied.
func TestOneEventOfAVersionIsParked(t *testing.T) {
	for _, c := range []struct {
		first, second event.Class
		parked        int64
	}{
		{event.VersionGap, event.VersionGap, 1},
		{event.VersionGap, event.InvalidAmount, 1},
		{event.InvalidAmount, event.VersionGap, 2},
		{event.InvalidAmount, event.InvalidAmount, 1},
	} {
		w := &waiting{}
		w.add(waitingEvent(7, 1, c.first, 1))
		w.add(waitingEvent(7, 2, c.second, 1))
		if len(w.first) != 1 || w.first[0].Record.Offset != c.parked {
			t.Errorf("%s, %s: %d parked, the first of offset %d", c.first, c.second, len(w.first), w.first[0].Record.Offset)
		}
	}
}

// TestEventsThatTheLogLacksStayBeyond shows that events that the log no longer has stay beyond the
// park limit. The account is stale until they are replayed.
func TestEventsThatTheLogLacksStayBeyond(t *testing.T) {
	of := &accountdb.Beyond{BeyondRange: accountdb.BeyondRange{FirstOffset: 10, FirstVersion: 5, Highest: 9, Events: 5}}
	for _, c := range []struct {
		what  string
		found []int64
		start int64
		want  string
	}{
		{"all", []int64{5, 6, 7, 8, 9}, 10, "0 events"},
		{"the last one was compacted", []int64{5, 6}, 10, "1 events from 9"},
		{"none", nil, 10, "1 events from 9"},
		{"retention", []int64{8, 9}, 11, "5 events from 5"},
		{"retention, after the next one was found", []int64{5, 6}, 11, "1 events from 9"},
	} {
		w := &waiting{above: 4}
		for _, v := range c.found {
			receive(w, waitingEvent(v, v+5, event.VersionGap, 1))
		}
		rest := w.left(of, c.start)
		got := fmt.Sprintf("%d events from %d", rest.Events, rest.Lowest)
		if !strings.HasPrefix(got, c.want) || rest.Events > 0 && rest.FirstOffset != projection.NoOffset {
			t.Errorf("%s: %s, %+v; want %s", c.what, got, rest, c.want)
		}
	}
}

// TestBeyondReadsLargeBatches shows that events beyond the park limit are read again from every batch
// that the consumer accepts. By default, the client accepts answers up to 100 MiB, and a Reader accepts
// batches up to 64 MiB, decompressed.
func TestBeyondReadsLargeBatches(t *testing.T) {
	t.Parallel()
	const bytes = 101 << 20
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "large"), kfake.BrokerConfigs(map[string]string{"message.max.bytes": "209715200"}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	for _, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.ZstdCompression()} {
		producer := devtest.Client(t, cluster.ListenAddrs(), kgo.ProducerBatchCompression(codec), kgo.ProducerBatchMaxBytes(2*bytes), kgo.BrokerMaxWriteBytes(2*bytes))
		if err := producer.ProduceSync(t.Context(), &kgo.Record{Topic: "large", Value: make([]byte, bytes)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	c := &Flags{}
	c.Topic, c.MaxBatchBytes = "large", 2*bytes
	p := &Process{log: slog.New(slog.DiscardHandler), cmd: c, kind: balance.Definition{}}
	if err := p.clients([]kgo.Opt{kgo.SeedBrokers(cluster.ListenAddrs()...)}, traced{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.admin.Close)
	for offset := range int64(2) {
		record, err := p.beyondLimit().reader.ReadAt(t.Context(), 0, offset)
		if err != nil || len(record.Value) != bytes {
			t.Errorf("the record at offset %d is not read: %v", offset, err)
		}
	}
}
