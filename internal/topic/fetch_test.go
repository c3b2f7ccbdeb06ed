package topic

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"projector/internal/devstack/devtest"
)

// TestReaderPassesControlAndAbortedRecords shows that a read ends although the last offsets of the
// log are transaction markers and have no records.
func TestReaderPassesControlAndAbortedRecords(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(1, testTopic))
	transact(t, cluster, kgo.TryCommit, "a", "b") // offsets 0 and 1, marker at 2
	transact(t, cluster, kgo.TryAbort, "c")       // offset 3, marker at 4
	r := newReader(t, cluster)
	assertCommitted(t, r, 0, 1)
	transact(t, cluster, kgo.TryCommit, "d") // offset 5, marker at 6
	assertCommitted(t, r, 0, 1, 5)
	for _, offset := range []int64{2, 3, 4, 6} {
		if _, err := r.ReadAt(soon(t), 0, offset); !errors.Is(err, ErrNoRecord) {
			t.Errorf("offset %d: %v", offset, err)
		}
	}
}

func assertCommitted(t *testing.T, r *Reader, want ...int64) {
	t.Helper()
	if got := offsets(t, r, Scope{}); !slices.Equal(got[0], want) {
		t.Errorf("read %v, want %v", got, want)
	}
}

// TestASilentLeaderIsWaitedForOnce has a broker that answers no fetch. The waits for its partitions
// would add up, so only the first of them is fetched.
func TestASilentLeaderIsWaitedForOnce(t *testing.T) {
	const partitions = 4
	cluster := newCluster(t, kfake.SeedTopics(partitions, testTopic))
	fill(t, cluster, partitions, partitions)
	var fetched sync.Map
	cluster.ControlKey(int16(kmsg.Fetch), func(request kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		for _, topic := range request.(*kmsg.FetchRequest).Topics {
			for _, p := range topic.Partitions {
				fetched.Store(p.Partition, true)
			}
		}
		cluster.SleepControl(func() { <-t.Context().Done() })
		return nil, nil, false
	})
	r := newReader(t, cluster)
	r.patience, r.within = 3*time.Second, 3*time.Second
	var lost []int32
	for _, err := range r.Records(soon(t), Scope{}) {
		gone, is := errors.AsType[*PartitionError](err)
		if !is || !strings.Contains(gone.Reason(), "broker 0 leads it") {
			t.Fatalf("error %v", err)
		}
		lost = append(lost, gone.Partition)
	}
	if slices.Sort(lost); !slices.Equal(lost, []int32{0, 1, 2, 3}) {
		t.Errorf("lost %v", lost)
	}
	n := 0
	fetched.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d partitions were fetched", n)
	}
}

// TestReaderStopsBeforeAnOpenTransaction shows that the reader does not wait for an open
// transaction.
func TestReaderStopsBeforeAnOpenTransaction(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(1, testTopic))
	fill(t, cluster, 1, 2)
	open := devtest.Client(t, cluster.ListenAddrs(), kgo.TransactionalID("open"), kgo.DefaultProduceTopic(testTopic))
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
	client := devtest.Client(t, cluster.ListenAddrs(), kgo.TransactionalID("tx"), kgo.DefaultProduceTopic(testTopic))
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

// TestReaderStartsWhereTheLogBegins shows that a read begins at the start of the log, even if the
// start moves before the read or during it.
func TestReaderStartsWhereTheLogBegins(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(2, testTopic))
	fill(t, cluster, 2, 20)
	deleteBefore(t, cluster, 0, 4)
	r := newReader(t, cluster)
	got := map[int32][]int64{}
	for record, err := range r.Records(soon(t), Scope{}) {
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 {
			deleteBefore(t, cluster, 1, 7) // the reader has not reached partition 1
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
	to.AddOffset(testTopic, partition, offset, -1)
	if _, err := kadm.NewClient(devtest.Client(t, cluster.ListenAddrs())).DeleteRecords(soon(t), to); err != nil {
		t.Fatal(err)
	}
}

// TestReaderEndsWhereNothingIsLeft shows that a read ends after compaction has removed the last
// records. The broker then returns no data before the end of the log.
func TestReaderEndsWhereNothingIsLeft(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(2, testTopic))
	fill(t, cluster, 2, 20)
	answerEmpty(cluster, 0, 10)
	got := offsets(t, newReader(t, cluster), Scope{})
	if len(got[0]) != 0 || !slices.Equal(got[1], []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) {
		t.Errorf("read %v", got)
	}
}

// TestReaderFailsIfTheLogEndsEarly reads from a leader that does not know the last records, for
// example because it has just become the leader. Dead letters would otherwise be missing from a list.
func TestReaderFailsIfTheLogEndsEarly(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(2, testTopic))
	fill(t, cluster, 2, 20)
	answerEmpty(cluster, 0, 9)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	r := newReader(t, cluster)
	r.within = time.Second
	read, failed := 0, []int32{}
	for record, err := range r.Records(ctx, Scope{}) {
		var lost *PartitionError
		switch {
		case err == nil:
			read++
			if record.Partition != 1 {
				t.Errorf("read a record of partition %d", record.Partition)
			}
		case errors.As(err, &lost):
			failed = append(failed, lost.Partition)
			t.Logf("partition %d: %v", lost.Partition, lost.Err)
		default:
			t.Fatal(err)
		}
	}
	if read != 10 || !slices.Equal(failed, []int32{0}) {
		t.Errorf("read %d records, and not the partitions %v", read, failed)
	}
}

// answerEmpty makes the broker return no data for fetches of a partition, and the end of its log.
func answerEmpty(cluster *kfake.Cluster, partition int32, end int64) {
	cluster.ControlKey(int16(kmsg.Fetch), func(request kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		fetch := request.(*kmsg.FetchRequest)
		asked := fetch.Topics[0].Partitions[0]
		if asked.Partition != partition {
			return nil, nil, false
		}
		p := kmsg.NewFetchResponseTopicPartition()
		p.Partition, p.HighWatermark, p.LastStableOffset = asked.Partition, end, end
		topic := kmsg.NewFetchResponseTopic()
		topic.Topic, topic.TopicID = fetch.Topics[0].Topic, fetch.Topics[0].TopicID
		topic.Partitions = append(topic.Partitions, p)
		response := fetch.ResponseKind().(*kmsg.FetchResponse)
		response.Topics = append(response.Topics, topic)
		return response, nil, true
	})
}

func TestReaderFollowsTheLeader(t *testing.T) {
	cluster := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(2, testTopic))
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
				if node != cluster.LeaderFor(testTopic, 1) {
					if err := cluster.MoveTopicPartition(testTopic, 1, node); err != nil {
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

// TestReaderLeavesPartitionsThatLoseTheirLeader shows that the other partitions are read when two
// partitions lose their leader. The read waits only for the leader of the first of these
// partitions.
func TestReaderLeavesPartitionsThatLoseTheirLeader(t *testing.T) {
	patience, waits := time.Second, 0
	for ; waits <= 2 && patience < 20*time.Second; patience *= 4 { // a slow machine asks too seldom in a second
		t.Run(patience.String(), func(t *testing.T) { waits = loseLeaders1and2(t, patience) })
	}
	if waits <= 2 {
		t.Errorf("asked %d times who leads the first of them, want that it is waited for", waits)
	}
}

// The function loseLeaders1and2 reads a topic whose partitions 1 and 2 lose their leader. It returns
// how often the reader asked who leads partition 1.
func loseLeaders1and2(t *testing.T, patience time.Duration) int {
	t.Helper()
	cluster := newCluster(t, kfake.SeedTopics(4, testTopic))
	fill(t, cluster, 4, 40)
	r := newReader(t, cluster)
	r.patience = patience
	asked := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: testTopic, Count: -1, Observe: true})
	var (
		lost   []int32
		tries  []int // requests up to the error of each lost partition
		before int   // requests before the partitions lose their leader
	)
	got, away := map[int32]int{}, false
	for record, err := range r.Records(soon(t), Scope{}) {
		var partition *PartitionError
		switch {
		case errors.As(err, &partition):
			lost, tries = append(lost, partition.Partition), append(tries, asked.Hits())
		case err != nil:
			t.Fatal(err)
		default:
			got[record.Partition]++
		}
		if !away { // now partition 0 is being read
			away, before = true, asked.Hits()
			loseLeader(cluster, 1)
			loseLeader(cluster, 2)
		}
	}
	if got[0] != 10 || got[1] != 0 || got[2] != 0 || got[3] != 10 || !slices.Equal(lost, []int32{1, 2}) {
		t.Fatalf("read %v, lost %v", got, lost)
	}
	if second := tries[1] - tries[0]; second > 2 {
		t.Errorf("asked %d times who leads the second of them, want that it is not waited for", second)
	}
	if _, err := r.ReadAt(soon(t), 3, 4); err != nil {
		t.Errorf("another partition: %v", err)
	}
	_, err := r.ReadAt(soon(t), 2, 4)
	if partition := (*PartitionError)(nil); !errors.As(err, &partition) || !errors.Is(err, kerr.LeaderNotAvailable) {
		t.Errorf("a partition without a leader: %v", err)
	}
	return tries[0] - before
}

// loseLeader makes the brokers report a partition without a leader.
func loseLeader(cluster *kfake.Cluster, partition int32) *kfake.FaultHandle {
	return cluster.Fault(kfake.Fault{
		Keys:  []kmsg.Key{kmsg.Metadata, kmsg.ListOffsets, kmsg.Fetch},
		Topic: testTopic, Partitions: []int32{partition}, Err: kerr.LeaderNotAvailable, Count: -1,
	})
}

func TestReaderErrors(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(1, testTopic))
	fill(t, cluster, 1, 3)
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: testTopic, Err: kerr.TopicAuthorizationFailed})
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
	cluster := newCluster(t, kfake.SeedTopics(1, testTopic))
	fill(t, cluster, 1, 3)
	offsets(t, newReader(t, cluster), Scope{})
	groups, err := kadm.NewClient(devtest.Client(t, cluster.ListenAddrs())).ListGroups(soon(t))
	if err != nil || len(groups) != 0 {
		t.Errorf("groups %v, %v", groups, err)
	}
}

// TestRangeOfAFullLog shows that a read of a Span with Full fails if the broker returns no data or
// the log was truncated. Otherwise a rebuild would treat consumed records as if they did not exist.
func TestRangeOfAFullLog(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(2, testTopic))
	fill(t, cluster, 2, 20)
	answerEmpty(cluster, 0, 10)
	r := newReader(t, cluster)
	for name, c := range map[string]struct {
		span  Span
		fails bool
	}{
		"no data":                 {Span{Partition: 0, To: 10}, false},
		"no data of a full log":   {Span{Partition: 0, To: 10, Full: true}, true},
		"cut back":                {Span{Partition: 1, From: 15, To: 20}, true},
		"cut back, of a full log": {Span{Partition: 1, From: 15, To: 20, Full: true}, true},
		"a full log":              {Span{Partition: 1, To: 10, Full: true}, false},
	} {
		limit := time.Minute
		if c.fails {
			limit = time.Second // one of the failures is that there is still no data at the end
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		var got error
		for _, err := range r.Range(ctx, c.span) {
			got = err
		}
		cancel()
		if (got != nil) != c.fails {
			t.Errorf("%s: %v", name, got)
		}
	}
}
