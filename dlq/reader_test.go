package dlq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func newReader(t *testing.T, cluster *kfake.Cluster) *Reader {
	t.Helper()
	r := NewReader(newClient(t, cluster, kgo.MetadataMinAge(10*time.Millisecond)), deadTopic)
	r.pause = time.Millisecond
	return r
}

// fill produces n records in all to the partitions in turn.
func fill(t *testing.T, cluster *kfake.Cluster, partitions, n int) {
	t.Helper()
	client := newClient(t, cluster, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(n+1))
	for i := range n {
		record := &kgo.Record{Topic: deadTopic, Partition: int32(i % partitions), Value: fmt.Append(nil, i)}
		client.Produce(soon(t), record, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	if err := client.Flush(soon(t)); err != nil {
		t.Fatal(err)
	}
}

// offsets reads everything in scope: the offsets by partition.
func offsets(t *testing.T, r *Reader, scope Scope) map[int32][]int64 {
	t.Helper()
	got := map[int32][]int64{}
	for record, err := range r.Records(soon(t), scope) {
		if err != nil {
			t.Fatal(err)
		}
		got[record.Partition] = append(got[record.Partition], record.Offset)
	}
	return got
}

func TestReaderStreamsALargeTopic(t *testing.T) {
	const partitions, n = 4, 100_000
	cluster := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(partitions, deadTopic))
	fill(t, cluster, partitions, n)

	var last Progress
	next, count := map[int32]int64{}, 0
	scope := Scope{Progress: func(p Progress) {
		if p.Done < last.Done || p.Total != n {
			t.Errorf("progress went from %+v to %+v", last, p)
		}
		last = p
	}}
	for record, err := range newReader(t, cluster).Records(soon(t), scope) {
		if err != nil {
			t.Fatal(err)
		}
		if record.Offset != next[record.Partition] {
			t.Fatalf("partition %d: offset %d after %d", record.Partition, record.Offset, next[record.Partition]-1)
		}
		if want := fmt.Sprint(record.Offset*partitions + int64(record.Partition)); string(record.Value) != want {
			t.Fatalf("partition %d offset %d holds %q, want %s", record.Partition, record.Offset, record.Value, want)
		}
		next[record.Partition]++
		count++
	}
	if count != n || last.Done != n {
		t.Errorf("%d records, progress %+v", count, last)
	}
}

func TestReaderOfAMissingOrEmptyTopic(t *testing.T) {
	cluster := newCluster(t)
	r := newReader(t, cluster)
	if got := offsets(t, r, Scope{}); len(got) != 0 {
		t.Errorf("missing: %v", got)
	}
	if _, err := r.ReadAt(soon(t), 0, 0); !errors.Is(err, ErrNoRecord) {
		t.Errorf("ReadAt: %v", err)
	}
	createTopic(t, cluster, deadTopic, 2, nil)
	if got := offsets(t, newReader(t, cluster), Scope{}); len(got) != 0 {
		t.Errorf("empty: %v", got)
	}
}

func TestReaderReadsOnlyWhatWasThereAtTheStart(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(1, deadTopic))
	fill(t, cluster, 1, 3)
	count := 0
	for _, err := range newReader(t, cluster).Records(soon(t), Scope{}) {
		if err != nil {
			t.Fatal(err)
		}
		count++
		fill(t, cluster, 1, 2)
	}
	if count != 3 {
		t.Errorf("%d records, want 3", count)
	}
}

func TestReaderScopeAndEarlyStop(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(3, deadTopic))
	fill(t, cluster, 3, 9)
	r := newReader(t, cluster)
	got := offsets(t, r, Scope{Partitions: []int32{2, 9}})
	if len(got) != 1 || !slices.Equal(got[2], []int64{0, 1, 2}) {
		t.Errorf("partition 2 only: %v", got)
	}
	if got := offsets(t, r, Scope{Partitions: []int32{}}); len(got) != 0 {
		t.Errorf("no partition: %v", got)
	}
	for range r.Records(soon(t), Scope{}) {
		break
	}
}

func TestReadAt(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(2, deadTopic))
	fill(t, cluster, 2, 10)
	r := newReader(t, cluster)
	for offset := range int64(5) {
		record, err := r.ReadAt(soon(t), 1, offset)
		if err != nil || record.Offset != offset || record.Partition != 1 {
			t.Errorf("offset %d: %v, %v", offset, record, err)
		}
	}
	for _, place := range []struct {
		partition int32
		offset    int64
	}{{1, 5}, {1, -1}, {7, 0}, {-1, 0}} {
		if _, err := r.ReadAt(soon(t), place.partition, place.offset); !errors.Is(err, ErrNoRecord) {
			t.Errorf("%v: %v", place, err)
		}
	}
}

// TestReaderPassesControlAndAbortedRecords: the markers at the end of the log
// hold offsets and no records.
func TestReaderPassesControlAndAbortedRecords(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(1, deadTopic))
	transact(t, cluster, kgo.TryCommit, "a", "b") // 0, 1, marker 2
	transact(t, cluster, kgo.TryAbort, "c")       // 3, marker 4
	r := newReader(t, cluster)
	if got := offsets(t, r, Scope{}); !slices.Equal(got[0], []int64{0, 1}) {
		t.Errorf("read %v", got)
	}
	for _, offset := range []int64{2, 3, 4} {
		if _, err := r.ReadAt(soon(t), 0, offset); !errors.Is(err, ErrNoRecord) {
			t.Errorf("offset %d: %v", offset, err)
		}
	}
}

// TestReaderStopsBeforeAnOpenTransaction: what is not committed is not waited for.
func TestReaderStopsBeforeAnOpenTransaction(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(1, deadTopic))
	fill(t, cluster, 1, 2)
	open := newClient(t, cluster, kgo.TransactionalID("open"), kgo.DefaultProduceTopic(deadTopic))
	if err := open.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := open.ProduceSync(soon(t), kgo.StringRecord("open")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	fill(t, cluster, 1, 2)
	if got := offsets(t, newReader(t, cluster), Scope{}); !slices.Equal(got[0], []int64{0, 1}) {
		t.Errorf("read %v", got)
	}
}

func transact(t *testing.T, cluster *kfake.Cluster, end kgo.TransactionEndTry, values ...string) {
	t.Helper()
	client := newClient(t, cluster, kgo.TransactionalID("tx"), kgo.DefaultProduceTopic(deadTopic))
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		if err := client.ProduceSync(soon(t), kgo.StringRecord(v)).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.EndTransaction(soon(t), end); err != nil {
		t.Fatal(err)
	}
}

// TestReaderStartsWhereTheLogBegins, before and while it is read.
func TestReaderStartsWhereTheLogBegins(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(2, deadTopic))
	fill(t, cluster, 2, 20)
	deleteBefore(t, cluster, 0, 4)
	r := newReader(t, cluster)
	got := map[int32][]int64{}
	for record, err := range r.Records(soon(t), Scope{}) {
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 {
			deleteBefore(t, cluster, 1, 7) // partition 1 is still to come
		}
		got[record.Partition] = append(got[record.Partition], record.Offset)
	}
	if !slices.Equal(got[0], []int64{4, 5, 6, 7, 8, 9}) || !slices.Equal(got[1], []int64{7, 8, 9}) {
		t.Errorf("read %v", got)
	}
}

func deleteBefore(t *testing.T, cluster *kfake.Cluster, partition int32, offset int64) {
	t.Helper()
	var to kadm.Offsets
	to.AddOffset(deadTopic, partition, offset, -1)
	if _, err := kadm.NewClient(newClient(t, cluster)).DeleteRecords(soon(t), to); err != nil {
		t.Fatal(err)
	}
}

// TestReaderEndsWhereNothingIsLeft: the last records were compacted away, and the
// broker has nothing to answer with below the end of the log.
func TestReaderEndsWhereNothingIsLeft(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(2, deadTopic))
	fill(t, cluster, 2, 20)
	answerEmpty(cluster, 0)
	got := offsets(t, newReader(t, cluster), Scope{})
	if len(got[0]) != 0 || !slices.Equal(got[1], []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) {
		t.Errorf("read %v", got)
	}
}

// answerEmpty answers fetches of a partition without data.
func answerEmpty(cluster *kfake.Cluster, partition int32) {
	cluster.ControlKey(int16(kmsg.Fetch), func(request kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		fetch := request.(*kmsg.FetchRequest)
		asked := fetch.Topics[0].Partitions[0]
		if asked.Partition != partition {
			return nil, nil, false
		}
		p := kmsg.NewFetchResponseTopicPartition()
		p.Partition, p.HighWatermark, p.LastStableOffset = asked.Partition, asked.FetchOffset+5, asked.FetchOffset+5
		topic := kmsg.NewFetchResponseTopic()
		topic.Topic, topic.TopicID = fetch.Topics[0].Topic, fetch.Topics[0].TopicID
		topic.Partitions = append(topic.Partitions, p)
		response := fetch.ResponseKind().(*kmsg.FetchResponse)
		response.Topics = append(response.Topics, topic)
		return response, nil, true
	})
}

func TestReaderFollowsTheLeader(t *testing.T) {
	cluster := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(2, deadTopic))
	fill(t, cluster, 2, 20)
	moved := false
	count := 0
	for _, err := range newReader(t, cluster).Records(soon(t), Scope{}) {
		if err != nil {
			t.Fatal(err)
		}
		if !moved {
			moved = true
			for node := range int32(3) {
				if node != cluster.LeaderFor(deadTopic, 1) {
					if err := cluster.MoveTopicPartition(deadTopic, 1, node); err != nil {
						t.Fatal(err)
					}
					break
				}
			}
		}
		count++
	}
	if count != 20 {
		t.Errorf("%d records, want 20", count)
	}
}

func TestReaderErrors(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(1, deadTopic))
	fill(t, cluster, 1, 3)
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: deadTopic, Err: kerr.TopicAuthorizationFailed})
	var got error
	for record, err := range newReader(t, cluster).Records(soon(t), Scope{}) {
		if record != nil || err == nil {
			t.Fatal("a record before the error")
		}
		got = err
	}
	if !errors.Is(got, kerr.TopicAuthorizationFailed) {
		t.Errorf("error %v", got)
	}

	ctx, cancel := context.WithCancel(soon(t))
	cancel()
	for _, err := range newReader(t, cluster).Records(ctx, Scope{}) {
		got = err
	}
	if !errors.Is(got, context.Canceled) {
		t.Errorf("with an ended context: %v", got)
	}
}

func TestReaderTouchesNoGroup(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(1, deadTopic))
	fill(t, cluster, 1, 3)
	offsets(t, newReader(t, cluster), Scope{})
	groups, err := kadm.NewClient(newClient(t, cluster)).ListGroups(soon(t))
	if err != nil || len(groups) != 0 {
		t.Errorf("groups %v, %v", groups, err)
	}
}
