//go:build faults

package faulttest

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/e2e/wait"
	"projector/internal/testbank"
)

// TestRetentionOvertakes makes Kafka delete unread records. The partition of these records must
// stop with an error until the position is moved past them. The other partitions must continue.
func TestRetentionOvertakes(t *testing.T) {
	const lost, partition = 500, 1
	s := newScene(t, broker(t), setting{records: 4000})
	s.startWatch()
	records := s.records()
	half := len(records) / 2
	check(t, s.producer.Send(t.Context(), records[:half]))
	first := s.launch("")
	s.await("the first half consumed", s.arrived)
	first.Terminate()
	s.remove(first)

	at := s.positions()[partition]
	end := s.produceTheLost(partition, lost)
	check(t, s.producer.Send(t.Context(), records[half:]))
	offsets := kadm.Offsets{}
	offsets.AddOffset(s.reader.Topic, partition, end, -1)
	deleted := must(s.admin.DeleteRecords(t.Context(), offsets))(t)
	check(t, deleted.Error())

	began := time.Now()
	r := s.launch("")
	wait.Until(t, 30*time.Second, "unready with the reason", r.Answers("/readyz", 503, "removed by retention"))
	s.stopped(partition, at)
	struck := time.Since(began)
	s.passOver(partition, end)
	wait.Until(t, s.setting.recovers, "passed over", s.arrived)
	took := time.Since(s.healedAt)
	wait.Until(t, s.setting.recovers, "ready", r.Answers("/readyz", 200, ""))
	s.exact("retention overtakes the position", int(end-at), struck, took)
}

// produceTheLost produces broken records that must never be read. In the journal, an ignored event
// replaces each of them. It returns the offset after the last record.
func (s *scene) produceTheLost(partition int32, n int) (end int64) {
	s.t.Helper()
	client := must(kgo.NewClient(kgo.SeedBrokers(s.addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner())))(s.t)
	defer client.Close()
	batch := make([]*kgo.Record, n)
	for i := range batch {
		batch[i] = &kgo.Record{Topic: s.reader.Topic, Partition: partition, Value: []byte("lost " + testbank.Marker)}
	}
	check(s.t, client.ProduceSync(s.t.Context(), batch...).FirstErr())
	for _, r := range batch {
		check(s.t, s.producer.Note(&testbank.Record{
			Partition: partition, Offset: r.Offset, Timestamp: r.Timestamp.UnixMilli(), Value: []byte(`{"eventType":"` + testbank.IgnoredType + `"}`),
		}))
	}
	return batch[n-1].Offset + 1
}
