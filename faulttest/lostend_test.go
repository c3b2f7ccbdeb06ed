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

// lostEnds returns faults in which a log ends before the consumer's position, as after an unclean
// leader election or a restored disk.
func lostEnds(kafka *devstack.Kafka) []fault {
	return []fault{
		{name: "a log loses its end under its consumer", strike: func(s *scene) int { return s.logLosesItsEnd(kafka, true) }},
		{name: "a log loses its end while nobody looks", strike: func(s *scene) int { return s.logLosesItsEnd(kafka, false) }},
	}
}

const (
	// lostTail is the number of lost records. All were consumed and none has an effect, so the
	// journal does not need them.
	lostTail = 200
	// tempted is how long the partition is watched to stay stopped. It is longer than the interval
	// at which a stopped partition is checked.
	tempted = 12 * time.Second
)

// logLosesItsEnd replaces a partition's log by an older copy and appends beyond the consumer's
// position. The partition must stay stopped, also under new replicas, until an operator sets its
// position. Then all new records must be processed. It returns how many records would have been
// skipped otherwise.
func (s *scene) logLosesItsEnd(kafka *devstack.Kafka, running bool) int {
	const partition = 1
	s.uncounted = true // the counters include the lost records, the journal does not
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
	s.watch.pardon(true)
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

// copyLog copies a log to which no client writes. It leaves out the indexes, which the broker keeps
// partly in memory and creates again.
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
// after them.
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

// appendBeyond produces to a partition more records than it has lost, including conflicting events,
// and a few records to all others.
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

// staysAt expects a partition to stay at its position although its log has more records, and the
// others to continue.
func (s *scene) staysAt(partition int32, at int64) {
	s.t.Helper()
	check(s.t, s.producer.Send(s.t.Context(), s.newcomers(int(s.setting.partitions)*10)))
	s.stopped(partition, at)
}

// anyUnready returns a check for await: one of the replicas is unready for the reason.
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

// endAll terminates all replicas, as a deployment does.
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

// setPosition sets the position of a stopped partition, as an operator does.
func (s *scene) setPosition(partition int32, offset int64) {
	s.t.Helper()
	s.exec(`UPDATE projector_position SET next_offset = $1, judged_until = $1, stopped_reason = NULL, fence = fence + 1
		WHERE consumer_group = $2 AND topic = $3 AND partition = $4`, offset, s.reader.Group, s.reader.Topic, partition)
}

// ready waits until all replicas are ready.
func (s *scene) ready() {
	s.t.Helper()
	for _, r := range s.replicas {
		wait.Until(s.t, patience, "ready", r.Answers("/readyz", 200, ""))
	}
}
