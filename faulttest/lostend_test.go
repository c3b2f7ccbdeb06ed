//go:build faults

package faulttest

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/e2e/wait"
	"projector/internal/devstack"
)

// lostEnds returns the faults in which a log ends before the consumer's position. An unclean leader
// election or a restored disk has this effect.
func lostEnds(kafka *devstack.Kafka) []fault {
	return []fault{
		{name: "a log loses its end under its consumer", strike: func(s *scene) int { return s.logLosesItsEnd(kafka, true) }},
		{name: "a log loses its end while nobody looks", strike: func(s *scene) int { return s.logLosesItsEnd(kafka, false) }},
	}
}

const (
	// lostTail is the number of records that the log loses. They are consumed before the loss but
	// have no effect, so they are not in the journal.
	lostTail = 200
	// tempted is how long the test expects the partition to stay stopped. It is longer than the
	// interval at which the program checks a stopped partition.
	tempted = 12 * time.Second
)

// logLosesItsEnd replaces a partition's log by an older copy and then appends records beyond the
// consumer's position. The partition must stay stopped, also with new replicas, until an operator
// sets its position. Then all new records must be processed. logLosesItsEnd returns how many
// records a consumer that does not notice the loss would have skipped.
func (s *scene) logLosesItsEnd(kafka *devstack.Kafka, running bool) int {
	const partition = 1
	s.uncounted = true // the counters include the lost records, but the journal does not
	s.feed.hold()
	defer s.feed.release()
	s.await("all consumed", s.arrived)
	dir := must(kafka.LogDir(1, s.reader.Topic, partition))(s.t)
	older := s.copyLog(dir)
	end := s.ends()[partition]
	at := s.tombstones(partition, lostTail)
	s.await("the tail is consumed", s.arrived)
	s.await("Kafka knows it", s.committedAll)
	if !running {
		s.endAll()
	}
	s.watch.pauseOffsetCheck(true)
	check(s.t, kafka.Stop(s.t.Context()))
	check(s.t, devstack.ReplaceDir(dir, older))
	check(s.t, kafka.StartNode(s.t.Context(), 1))
	if now := s.ends()[partition]; now != end {
		s.t.Fatalf("the log ends at %d and should end at %d", now, end)
	}
	const reason = "lost its end"
	if running {
		s.await("unready with the reason", s.anyUnready(reason))
	}
	s.appendBeyond(partition, at-end)
	if running {
		s.staysAt(partition, at)
		s.pause(tempted)
		s.staysAt(partition, at)
		s.endAll()
	}
	s.launch("")
	s.launch("")
	s.await("unready with the reason", s.anyUnready(reason))
	s.staysAt(partition, at)
	s.setPosition(partition, end)
	s.healed()
	s.await("all of the new log consumed", s.arrived)
	s.rewound()
	s.ready()
	return int(at - end)
}

// copyLog copies a log to which no client writes. It omits the indexes, because a part of them is
// only in the broker's memory. The broker creates them again.
func (s *scene) copyLog(dir string) string {
	s.t.Helper()
	older := filepath.Join(s.t.TempDir(), "older")
	check(s.t, devstack.ReplaceDir(older, dir))
	indexes := must(filepath.Glob(filepath.Join(older, "*index")))(s.t)
	if len(indexes) == 0 {
		s.t.Fatalf("no indexes in %s: is it a log?", dir)
	}
	for _, index := range indexes {
		check(s.t, os.Remove(index))
	}
	return older
}

// tombstones appends records without effect, which are not in the journal. It returns the offset
// after the last record.
func (s *scene) tombstones(partition int32, n int) int64 {
	s.t.Helper()
	client := must(kgo.NewClient(kgo.SeedBrokers(s.addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner())))(s.t)
	defer client.Close()
	batch := make([]*kgo.Record, n)
	for i := range batch {
		batch[i] = &kgo.Record{Topic: s.reader.Topic, Partition: partition, Key: []byte("gone")}
	}
	check(s.t, client.ProduceSync(s.t.Context(), batch...).FirstErr())
	return batch[n-1].Offset + 1
}

// appendBeyond produces more records to a partition than the partition has lost. Some of the
// records are conflicting events. appendBeyond also produces a few records to each other partition.
func (s *scene) appendBeyond(partition int32, lost int64) {
	s.t.Helper()
	records := s.newcomers(int(s.setting.partitions) * 10)
	for i, r := range s.newcomers(int(lost)) {
		r.Partition = partition
		records = append(records, r)
		if i%20 == 0 {
			r.Value = []byte(event(string(r.Key), 1, "FundsDebited", good))
			records = append(records, r)
		}
	}
	check(s.t, s.producer.Send(s.t.Context(), records))
}

// staysAt expects a partition to stay at its position although its log has more records. The other
// partitions must continue.
func (s *scene) staysAt(partition int32, at int64) {
	s.t.Helper()
	check(s.t, s.producer.Send(s.t.Context(), s.newcomers(int(s.setting.partitions)*10)))
	s.stopped(partition, at)
}

// anyUnready returns a check for await. It succeeds when one of the replicas is unready for the
// given reason.
func (s *scene) anyUnready(reason string) func() string {
	return func() (state string) {
		for _, r := range s.replicas {
			one := r.Answers("/readyz", 503, reason)()
			if one == "" {
				return ""
			}
			state += one + "\n"
		}
		return state
	}
}

// endAll terminates all replicas, one after the other.
func (s *scene) endAll() {
	s.t.Helper()
	for len(s.replicas) > 0 {
		r := s.replicas[0]
		r.Terminate()
		s.remove(r)
	}
}

func (s *scene) committedAll() string {
	committed, positions := must(s.reader.Committed(s.t.Context(), s.admin))(s.t), s.positions()
	if fmt.Sprint(committed) != fmt.Sprint(positions) {
		return fmt.Sprintf("committed %v, durable %v", committed, positions)
	}
	return ""
}

// setPosition sets the position of a stopped partition by SQL.
func (s *scene) setPosition(partition int32, offset int64) {
	s.t.Helper()
	s.exec(`UPDATE projector_position SET next_offset = $1, judged_until = $1, stopped_reason = NULL, fence = fence + 1
		WHERE consumer_group = $2 AND topic = $3 AND partition = $4`, offset, s.reader.Group, s.reader.Topic, partition)
}

// The method ready waits until all replicas are ready.
func (s *scene) ready() {
	s.t.Helper()
	for _, r := range s.replicas {
		wait.Until(s.t, patience, "ready", r.Answers("/readyz", 200, ""))
	}
}
