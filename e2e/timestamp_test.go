package e2e_test

import (
	wire "encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"projector/internal/testbank/compare"
)

// acceptAnyTimestamp configures the topic to accept records with any timestamp. Brokers before 3.6
// always accept them.
func (w *world) acceptAnyTimestamp() {
	w.t.Helper()
	configs := map[string]string{
		"retention.ms": "-1", "message.timestamp.after.max.ms": fmt.Sprint(int64(math.MaxInt64)),
	}
	for name, value := range configs {
		if _, err := w.admin.AlterTopicConfigs(w.t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: name, Value: &value}}, w.topic); err != nil {
			w.t.Fatal(err)
		}
	}
}

// TestTimestampsBeyondTheCalendar sends wrong timestamps, for example nanoseconds instead of
// milliseconds. The client cannot represent such a time. Only the reported times may be wrong, and
// all other results must be right.
func TestTimestampsBeyondTheCalendar(t *testing.T) {
	t.Parallel()
	const last = "9223372036854" // in ms, a time in the year 2262; the last that the client can represent
	cases := []struct {
		name   string
		ms     int64
		header string
	}{
		{"nanoseconds", 1_700_000_000_123_456_789, last},
		{"microseconds", 1_700_000_000_123_456, last},
		{"none", -1, "-1"},
		{"most", math.MaxInt64, "-1"}, // the client cannot distinguish this value from a missing timestamp
		{"last", 9223372036854, last},
		{"usual", 1_700_000_000_123, "1700000000123"},
	}
	w := newWorld(t, 1)
	w.acceptAnyTimestamp()
	p := w.start()
	want := map[string]string{}
	for _, c := range cases {
		w.raw(c.ms, c.name, credit(c.name, 2).Value) // the first version is missing, so the event is parked
		want[c.name] = c.header
	}
	await(t, "every record consumed", w.arrived)
	p.terminate()
	for _, letter := range w.read(w.dlq) {
		f := compare.Split(letter)
		if got := f.Added["errors.timestamp"]; got != want[f.Added["errors.account_id"]] {
			t.Errorf("%s: the dead letter says %s, want %s", f.Added["errors.account_id"], got, want[f.Added["errors.account_id"]])
		}
	}
	w.exec("DELETE FROM parked_event")
	if r := w.rebuild("--yes"); int(r.Changed) != len(cases) {
		t.Errorf("rebuilt: %+v", r)
	}
	for account, age := range w.parkedSince() {
		if age < 0 || age > 3600 && account != "usual" {
			t.Errorf("after the rebuild %s waits for %v s", account, age)
		}
	}

	w.raw(cases[0].ms, "late", credit("late", 1).Value)
	if behind := w.lagSeconds(); behind == nil || *behind > 3600 {
		t.Errorf("lag of %v s", show(behind))
	}
	w.raw(-1, "late", credit("late", 2).Value)
	w.exec("UPDATE projector_position SET next_offset = next_offset + 1, fence = fence + 1")
	if behind := w.lagSeconds(); behind != nil {
		t.Errorf("lag of %v s by a record without a time", show(behind))
	}
}

func show(n *float64) string {
	if n == nil {
		return "null"
	}
	return fmt.Sprint(*n)
}

// parkedSince returns for how many seconds each account has waited.
func (w *world) parkedSince() map[string]float64 {
	w.t.Helper()
	since := map[string]float64{}
	rows, err := w.db.Query(w.t.Context(), "SELECT account_id, extract(epoch FROM now() - since)::float8 FROM account_hold")
	if err != nil {
		w.t.Fatal(err)
	}
	var (
		account string
		age     float64
	)
	if _, err := pgx.ForEachRow(rows, []any{&account, &age}, func() error { since[account] = age; return nil }); err != nil {
		w.t.Fatal(err)
	}
	return since
}

// lagSeconds returns the seconds that `lag` reports for the only partition. Nil means that they are
// unknown.
func (w *world) lagSeconds() *float64 {
	w.t.Helper()
	env := []string{"DATABASE_URL=" + w.url, "KAFKA_BROKERS=" + w.addrs[0]}
	status, stdout, stderr := once(w.t, env, "lag", "--topic="+w.topic, "--group="+w.group, "--output=json")
	if status != 0 {
		w.t.Fatalf("lag exits with %d: %s", status, stderr)
	}
	var lag struct {
		Seconds *float64 `json:"lag_seconds"`
	}
	if err := json.Unmarshal([]byte(stdout), &lag); err != nil {
		w.t.Fatal(err)
	}
	return lag.Seconds
}

// raw appends a record with a timestamp that the client refuses to send.
func (w *world) raw(ms int64, key string, value []byte) {
	w.t.Helper()
	topics, err := w.admin.ListTopics(w.t.Context(), w.topic)
	if err != nil {
		w.t.Fatal(err)
	}
	partition := kmsg.NewProduceRequestTopicPartition()
	partition.Records = batchOf(ms, key, value)
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic, topic.TopicID = w.topic, topics[w.topic].ID
	topic.Partitions = append(topic.Partitions, partition)
	request := kmsg.NewPtrProduceRequest()
	request.Acks, request.TimeoutMillis = -1, 10_000
	request.Topics = append(request.Topics, topic)
	leader := topics[w.topic].Partitions[0].Leader
	// A broker may use the old configuration for a short time after the change.
	await(w.t, "the record is taken", func() string {
		response, err := request.RequestWith(w.t.Context(), w.kafka.Broker(int(leader)))
		if err == nil {
			err = kerr.ErrorForCode(response.Topics[0].Partitions[0].ErrorCode)
		}
		if errors.Is(err, kerr.InvalidTimestamp) {
			return err.Error()
		}
		if err != nil {
			w.t.Fatalf("produce: %v", err)
		}
		return ""
	})
}

// batchOf returns the wire format of a batch with one record.
func batchOf(ms int64, key string, value []byte) []byte {
	record := kmsg.NewRecord()
	record.Key, record.Value = []byte(key), value
	record.Length = int32(len(record.AppendTo(nil)) - 1) // minus the one byte of the length 0
	batch := kmsg.NewRecordBatch()
	batch.Magic, batch.NumRecords = 2, 1
	batch.FirstTimestamp, batch.MaxTimestamp = ms, ms
	batch.ProducerID, batch.ProducerEpoch, batch.FirstSequence = -1, -1, -1
	batch.Records = record.AppendTo(nil)
	sent := batch.AppendTo(nil)
	const length, crc, summed = 8, 17, 21
	wire.BigEndian.PutUint32(sent[length:], uint32(len(sent)-length-4))
	wire.BigEndian.PutUint32(sent[crc:], crc32.Checksum(sent[summed:], crc32.MakeTable(crc32.Castagnoli)))
	return sent
}
