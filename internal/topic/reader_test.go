package topic

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/devstack/devtest"
	"projector/projection"
)

func newReader(t *testing.T, cluster *kfake.Cluster) *Reader {
	t.Helper()
	r := NewReader(devtest.Client(t, cluster.ListenAddrs(), kgo.MetadataMinAge(10*time.Millisecond)), testTopic)
	r.pause = time.Millisecond
	return r
}

// fill produces n records in total, distributed round-robin over the partitions.
func fill(t *testing.T, cluster *kfake.Cluster, partitions, n int) {
	t.Helper()
	client := devtest.Client(t, cluster.ListenAddrs(), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(n+1))
	for i := range n {
		record := &kgo.Record{Topic: testTopic, Partition: int32(i % partitions), Value: fmt.Append(nil, i)}
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

// The function offsets reads all records in scope and returns their offsets by partition.
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
	const partitions, n = 4, 40_000
	cluster := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(partitions, testTopic))
	fill(t, cluster, partitions, n)

	last := int64(0)
	next, count := map[int32]int64{}, 0
	scope := Scope{Progress: func(done, total int64) {
		if done < last || total != n {
			t.Errorf("progress went from %d to %d of %d", last, done, total)
		}
		last = done
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
	if count != n || last != n {
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
	createTopic(t, cluster, 2)
	if got := offsets(t, newReader(t, cluster), Scope{}); len(got) != 0 {
		t.Errorf("empty: %v", got)
	}
}

func TestReaderReadsOnlyWhatWasThereAtTheStart(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(1, testTopic))
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
	cluster := newCluster(t, kfake.SeedTopics(3, testTopic))
	fill(t, cluster, 3, 9)
	r := newReader(t, cluster)
	got := offsets(t, r, Scope{Partitions: []int32{2, 9}})
	if len(got) != 1 || !slices.Equal(got[2], []int64{0, 1, 2}) {
		t.Errorf("partition 2 only: %v", got)
	}
	if got := offsets(t, r, Scope{Partitions: []int32{}}); len(got) != 0 {
		t.Errorf("no partition: %v", got)
	}
	for _, err := range r.Records(soon(t), Scope{}) {
		if err != nil {
			t.Error(err)
		}
		break
	}
}

func TestReadAt(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(2, testTopic))
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

// TestExtentsWithFrozenBrokers shows that Extents succeeds although two of three seed brokers
// accept connections and do not answer. A client chooses its first broker at random, so the test
// uses several clients.
func TestExtentsWithFrozenBrokers(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(2, testTopic))
	seeds := cluster.ListenAddrs()
	for range 2 {
		frozen, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = frozen.Close() })
		seeds = append(seeds, frozen.Addr().String())
	}
	var clients sync.WaitGroup
	for range 4 {
		reader := NewReader(devtest.Client(t, cluster.ListenAddrs(), kgo.SeedBrokers(seeds...)), testTopic)
		clients.Go(func() {
			all, exists, err := reader.Extents(soon(t))
			if err != nil || !exists || len(all.Partitions) != 2 {
				t.Errorf("%+v, exists %t: %v", all, exists, err)
			}
		})
	}
	clients.Wait()
}

// TestTimestampOf shows that a time which the client cannot represent is not used as a time.
func TestTimestampOf(t *testing.T) {
	wire := func(ms int64) time.Time { return time.Unix(0, ms*1e6) } // the client's conversion
	for name, c := range map[string]struct {
		at   time.Time
		want int64
	}{
		"usual":        {wire(1_700_000_000_123), 1_700_000_000_123},
		"none":         {wire(-1), projection.NoTimestamp},
		"no field":     {time.Time{}, projection.NoTimestamp},
		"last":         {wire(projection.LastTimestamp), projection.LastTimestamp},
		"beyond":       {wire(projection.LastTimestamp + 1), projection.LastTimestamp},
		"microseconds": {wire(1_700_000_000_123_456), projection.LastTimestamp},
		"nanoseconds":  {wire(1_700_000_000_123_456_789), projection.LastTimestamp},
	} {
		if got := TimestampOf(&kgo.Record{Timestamp: c.at}); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}
