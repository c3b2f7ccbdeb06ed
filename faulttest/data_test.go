//go:build faults

package faulttest

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/e2e/wait"
	"projector/faulttest/journal"
	"projector/internal/devstack/devtest"
	"projector/internal/testbank"
)

// badData returns the faults that are in the records themselves.
func badData() []fault {
	quiet := setting{partitions: 1, replicas: 1, records: 1, during: time.Millisecond}
	large := setting{
		partitions: 2, replicas: 1, records: 400, during: time.Second,
		topic: map[string]*string{"max.message.bytes": new("10000000")},
	}
	return []fault{
		{name: "poison first, in the middle, last, everywhere in a batch", setting: quiet, strike: poisonPlaced},
		{name: "records of 8 MB, good and bad", setting: large, strike: largeRecords},
	}
}

// event returns the JSON of one event.
func event(account string, version int, kind, data string) string {
	return fmt.Sprintf(`{"eventId":"%[1]s-%[2]d-%[3]s","eventType":%[3]q,"accountId":%[1]q,"version":%[2]d,"occurredAt":"2026-01-01T00:00:00Z","data":%[4]s}`,
		account, version, kind, data)
}

const good = `{"amount":"1.25","currency":"EUR"}`

// poison has functions that return events of different error classes. The parameters of each
// function are an account and the account's next version.
var poison = []func(account string, version int) string{
	func(a string, v int) string { return event(a, v, "FundsCredited", `{"amount":1.25,"currency":"EUR"}`) },
	func(a string, v int) string { return event(a, v, "FundsTeleported", good) },
	func(a string, v int) string { return event(a, v, "FundsCredited", `{"amount":"-1","currency":"EUR"}`) },
	func(a string, v int) string { return event(a, v, "FundsCredited", `{"amount":"1","currency":"EURO"}`) },
	func(a string, v int) string { return event(a, v, "FundsCredited", `{"amount":"1","currency":"USD"}`) },
	func(a string, v int) string { return event(a, v+1, "FundsCredited", good) },
	func(a string, v int) string { return event(a, v-1, "FundsDebited", good) },
	func(a string, v int) string {
		return event(a, v, "FundsCredited", `{"amount":"92233720368547758.07","currency":"EUR"}`)
	},
	func(a string, v int) string { return event(a, v, "FundsCredited", good)[1:] },
}

// poisonPlaced sends batches with one event per account. The functions in poison make the broken
// events, which are at different places in the batches.
func poisonPlaced(s *scene) (hits int) {
	const accounts = 40
	s.producer = s.otherProducer(kgo.ProducerLinger(50 * time.Millisecond)) // puts the events of each Send into one batch
	send := func(values []string) {
		records := make([]testbank.Record, len(values))
		for i, v := range values {
			records[i] = testbank.Record{Key: fmt.Appendf(nil, "a%d", i), Value: []byte(v)}
		}
		check(s.t, s.producer.Send(s.t.Context(), records))
		s.await("the batch is consumed", s.arrived)
	}
	for class, one := range poison {
		for _, places := range [][]int{{0}, {accounts / 2}, {accounts - 1}, {0, accounts / 2, accounts - 1}, all(accounts)} {
			prefix := fmt.Sprintf("p%d-%d-", class, hits)
			opened, next := []string{}, []string{}
			for i := range accounts {
				account := fmt.Sprint(prefix, i)
				opened = append(opened, event(account, 1, "AccountOpened", `{"currency":"EUR"}`), event(account, 2, "FundsCredited", good))
				next = append(next, event(account, 3, "FundsCredited", good))
			}
			for n, i := range places {
				pick := one
				if len(places) == accounts { // every event of this batch is broken, with mixed classes
					pick = poison[(class+n)%len(poison)]
				}
				next[i] = pick(fmt.Sprint(prefix, i), 3)
				hits++
			}
			send(opened)
			send(next)
		}
	}
	return hits
}

func all(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// otherProducer returns a producer with other options that continues the scene's journal.
func (s *scene) otherProducer(opts ...kgo.Opt) *journal.Producer {
	s.t.Helper()
	p := must(journal.Open(s.path, s.reader.Topic, s.addrs, opts...))(s.t)
	s.t.Cleanup(func() { _ = p.Close() })
	return p
}

// largeRecords sends valid and broken events of 8 MB. Some of them can be compressed and some
// cannot.
func largeRecords(s *scene) (hits int) {
	s.producer = s.otherProducer(kgo.ProducerBatchMaxBytes(10_000_000), kgo.ProducerBatchCompression(kgo.NoCompression()))
	filler := make([]byte, 8_000_000)
	for i := range filler {
		filler[i] = 'a' + byte(s.rnd.IntN(26))
	}
	note := func(value string) []byte {
		return bytes.Replace([]byte(value), []byte(`"data"`), fmt.Appendf(nil, `"note":%q,"data"`, filler), 1)
	}
	var records []testbank.Record
	add := func(value []byte) {
		records = append(records, testbank.Record{Partition: int32(len(records) % 2), Key: []byte("large"), Value: value})
		hits++
	}
	for i := range 12 {
		account := fmt.Sprintf("large-%d", i)
		add(note(event(account, 1, "FundsCredited", good)))
		add(note(event(account+"-bad", 1, "FundsCredited", `{"amount":"1,25","currency":"EUR"}`)))
	}
	check(s.t, s.producer.Send(s.t.Context(), records))
	s.await("all of it consumed", s.arrived)
	return hits
}

// TestBatchesBeyondTheBound sends batches that are too large to fetch. Their partitions stop with
// an error, the other partitions continue, and memory stays bounded. An operator can move the
// position past these batches.
func TestBatchesBeyondTheBound(t *testing.T) {
	const size = 80 << 20
	kafka := broker(t)
	giant := append(bytes.Repeat([]byte(" "), size), `{"eventType":"`+testbank.IgnoredType+`"}`...)
	for name, codec := range map[string]kgo.CompressionCodec{
		"decompression bomb":                kgo.GzipCompression(),
		"record beyond the client's limits": kgo.NoCompression(),
	} {
		t.Run(name, func(t *testing.T) { beyondTheBound(t, kafka, name, giant, codec) })
	}
}

func beyondTheBound(t *testing.T, kafka devtest.Cluster, name string, giant []byte, codec kgo.CompressionCodec) {
	t.Helper()
	s := newScene(t, kafka, setting{clean: true, records: 4000, topic: map[string]*string{"max.message.bytes": new("100000000")}})
	s.startWatch()
	s.startFeed()
	r := s.launch("")
	s.await("mid-stream", s.passed(400))

	client := must(kgo.NewClient(kgo.SeedBrokers(s.addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchMaxBytes(90<<20), kgo.ProducerBatchCompression(codec)))(t)
	defer client.Close()
	record := &kgo.Record{Topic: s.reader.Topic, Partition: 1, Value: giant}
	check(t, client.ProduceSync(t.Context(), record).FirstErr())
	// The journal gets an ignored event at the offset of the giant record, because the program
	// never processes that record.
	check(t, s.producer.Note(&testbank.Record{
		Partition: 1, Offset: record.Offset, Timestamp: record.Timestamp.UnixMilli(), Value: []byte(`{"eventType":"` + testbank.IgnoredType + `"}`),
	}))
	began := time.Now()
	wait.Until(t, 30*time.Second, "unready with the reason", r.Answers("/readyz", 503, "--max-batch-bytes"))
	s.feed.finish()
	s.stopped(1, record.Offset)
	struck := time.Since(began)
	s.passOver(1, record.Offset+1)
	wait.Until(t, s.setting.recovers, "passed over", s.arrived)
	took := time.Since(s.healedAt)
	wait.Until(t, s.setting.recovers, "ready", r.Answers("/readyz", 200, ""))
	s.exact(name, 1, struck, took)
}

// The method stopped waits until one partition has stopped at an offset and all others are consumed
// to their ends.
func (s *scene) stopped(partition int32, offset int64) {
	s.t.Helper()
	s.await("the other partitions at their ends", func() string {
		positions, ends := s.positions(), s.ends()
		for p, end := range ends {
			if p != partition && positions[p] != end {
				return fmt.Sprintf("positions %v, ends %v", positions, ends)
			}
		}
		return ""
	})
	s.await("one partition makes no progress", func() string {
		at := s.positions()[partition]
		if at > offset {
			s.t.Fatalf("partition %d went to %d, beyond %d, as if nothing were lost", partition, at, offset)
		}
		if at < offset {
			return fmt.Sprintf("at %d of %d", at, offset)
		}
		return ""
	})
}

// passOver moves the position by SQL past records that the program cannot read.
func (s *scene) passOver(partition int32, offset int64) {
	s.t.Helper()
	s.uncounted = true
	s.exec("UPDATE projector_position SET next_offset = $1, fence = fence + 1 WHERE consumer_group = $2 AND topic = $3 AND partition = $4",
		offset, s.reader.Group, s.reader.Topic, partition)
	s.healed()
}
