//go:build faults

package faulttest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
)

// brokenBroker returns the faults of a single broker.
func brokenBroker(kafka *devstack.Kafka) []fault {
	return []fault{{
		name: "broker kill -9, restarted", quick: true,
		strike: func(s *scene) (hits int) {
			s.uncounted = true // an eviction may interrupt a flush, and then no counter includes the flush
			for range scaled(2, 1) {
				check(s.t, kafka.Kill(1))
				s.pause(s.between(time.Second, 3*time.Second))
				check(s.t, kafka.StartNode(s.t.Context(), 1))
				s.healed()
				hits++
				s.await("progress", s.moved())
			}
			return hits
		},
	}}
}

// The method moved returns a check for await. It succeeds when the sum of the positions has
// increased or all records are consumed.
func (s *scene) moved() func() string {
	before := s.positions()
	return func() string {
		if sum(s.positions()) > sum(before) || s.arrived() == "" {
			return ""
		}
		return fmt.Sprintf("positions stand at %v", before)
	}
}

// TestThreeBrokers kills and restarts three brokers one after the other. The DLQ topic accepts a
// write only if all three brokers have it.
func TestThreeBrokers(t *testing.T) {
	kafka := devtest.Kafka(t, devstack.KafkaOptions{Brokers: 3})
	run(t, kafka, []fault{{
		name: "brokers kill -9 in turn; DLQ below min.insync.replicas",
		setting: setting{
			during: 150 * time.Second, records: 15_000, recovers: time.Minute,
			dlqConfig: map[string]*string{"min.insync.replicas": new("3")},
		},
		strike: func(s *scene) (hits int) {
			s.uncounted = true
			for id := 1; id <= 3; id++ {
				before := s.lines("publish dead letters", "not acknowledged")
				check(s.t, kafka.Kill(id))
				s.await("dead letters are refused", func() string {
					if s.lines("publish dead letters", "not acknowledged") == before {
						return "none so far"
					}
					return ""
				})
				hits += s.lines("publish dead letters", "not acknowledged") - before
				check(s.t, kafka.StartNode(s.t.Context(), id))
				s.healed()
				s.await("all replicas in sync", s.inSync(3))
				s.await("progress", s.moved())
			}
			return hits
		},
	}})
}

// lines counts, in the logs of all replicas, the lines that contain all of the texts.
func (s *scene) lines(texts ...string) (n int) {
	for _, r := range s.replicas {
		for _, line := range r.Lines() {
			if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
				n++
			}
		}
	}
	return n
}

// inSync returns a check for await. It succeeds when every partition of both topics has n replicas
// in sync.
func (s *scene) inSync(n int) func() string {
	return func() string {
		topics, err := s.admin.ListTopics(s.t.Context(), s.reader.Topic, s.dlq)
		if err != nil {
			return err.Error()
		}
		lacking := ""
		topics.EachPartition(func(p kadm.PartitionDetail) {
			if len(p.ISR) != n {
				lacking = fmt.Sprintf("%s/%d has %v in sync", p.Topic, p.Partition, p.ISR)
			}
		})
		return lacking
	}
}

// TestScriptedBroker tests faults that the test scripts in an in-process broker.
func TestScriptedBroker(t *testing.T) {
	for _, f := range []struct {
		brokers int
		fault   func(*devstack.Fake) fault
	}{
		{1, commitsAnsweredWithErrors}, {3, leadersMoved}, {1, dlqSilent}, {1, dlqMissing}, {1, dlqUnauthorised},
	} {
		fake := devtest.Fake(t, devstack.FakeOptions{Brokers: f.brokers})
		run(t, fake, []fault{f.fault(fake)})
	}
}

// commitsAnsweredWithErrors makes the broker return errors for OffsetCommit. First the broker
// applies each commit but returns a timeout. Then it refuses some commits and does not apply them.
func commitsAnsweredWithErrors(fake *devstack.Fake) fault {
	return fault{name: "OffsetCommit applied and answered with an error", strike: func(s *scene) int {
		applied := fake.Cluster.Fault(kfake.Fault{
			Keys: []kmsg.Key{kmsg.OffsetCommit}, Group: s.reader.Group, Err: kerr.RequestTimedOut, Count: -1,
		})
		s.pause(8 * time.Second)
		s.launch("") // a joining member fetches the offsets of a commit that got an error
		s.await("progress", s.moved())
		hits := applied.Hits()
		applied.Remove()
		refused := fake.Cluster.Fault(kfake.Fault{
			Keys: []kmsg.Key{kmsg.OffsetCommit}, Group: s.reader.Group, Err: kerr.CoordinatorLoadInProgress, Count: 5,
		})
		s.await("refused commits", func() string {
			if refused.Hits() == 0 {
				return "none so far"
			}
			return ""
		})
		refused.Remove()
		return hits
	}}
}

// leadersMoved moves the leader of partition 0 and the coordinator of the group six times, with a
// pause of at least two seconds after each move. Other partitions and groups may move too.
func leadersMoved(fake *devstack.Fake) fault {
	return fault{
		name: "leaders and coordinators moved every 2 s",
		strike: func(s *scene) (hits int) {
			for i := range 6 {
				coordinator, leader := fake.Cluster.CoordinatorFor(s.reader.Group), fake.Cluster.LeaderFor(s.reader.Topic, 0)
				for fake.Cluster.CoordinatorFor(s.reader.Group) == coordinator {
					fake.Cluster.RehashCoordinators()
				}
				for fake.Cluster.LeaderFor(s.reader.Topic, 0) == leader {
					fake.Cluster.ShufflePartitionLeaders()
				}
				s.healed()
				hits++
				if i == 1 {
					s.launch("")
				}
				s.pause(2 * time.Second)
				s.await("progress", s.moved())
			}
			return hits
		},
	}
}

// poisoned is the setting of a stream that has dead letters in partition 0 only. The other
// partitions must continue.
var poisoned = setting{clean: true}

// othersFlow expects partition 0 to stop and all other partitions to move.
func (s *scene) othersFlow() {
	s.t.Helper()
	s.await("the other partitions move", s.moves(1, 2, 3))
	stood := s.positions()[0]
	s.pause(time.Second)
	s.await("the other partitions still move", s.moves(1, 2, 3))
	if now := s.positions()[0]; now != stood {
		s.t.Errorf("partition 0 went from %d to %d with dead letters nobody took", stood, now)
	}
}

func dlqSilent(fake *devstack.Fake) fault {
	set := poisoned
	set.recovers = time.Minute // the client waits until unanswered requests time out
	set.during = 40 * time.Second
	set.dlqConfig = map[string]*string{}
	return fault{name: "DLQ silent", setting: set, strike: func(s *scene) int {
		id := fake.Cluster.TopicInfo(s.dlq).TopicID
		var unanswered atomic.Int64
		var silent atomic.Bool
		silent.Store(true)
		fake.Cluster.ControlKey(int16(kmsg.Produce), func(request kmsg.Request) (kmsg.Response, error, bool) {
			fake.Cluster.KeepControl()
			if !silent.Load() || !produces(request, s.dlq, id) {
				return nil, nil, false
			}
			unanswered.Add(1)
			return nil, nil, true
		})
		s.await("unanswered requests", func() string {
			if unanswered.Load() == 0 {
				return "none so far"
			}
			return ""
		})
		s.othersFlow()
		s.await("retries", s.retries("kafka", "", 0))
		silent.Store(false)
		return int(unanswered.Load())
	}}
}

func produces(request kmsg.Request, topic string, id [16]byte) bool {
	for _, t := range request.(*kmsg.ProduceRequest).Topics {
		if t.Topic == topic || bytes.Equal(t.TopicID[:], id[:]) {
			return true
		}
	}
	return false
}

func dlqMissing(fake *devstack.Fake) fault {
	set := poisoned
	set.replicas = -1
	return fault{name: "DLQ missing, and nobody may create it", setting: set, strike: func(s *scene) int {
		refused := fake.Cluster.Fault(kfake.Fault{
			Keys: []kmsg.Key{kmsg.CreateTopics}, Topic: s.dlq, Err: kerr.TopicAuthorizationFailed, Count: -1,
		})
		s.launch("")
		s.await("retries", s.retries("kafka", "", 0))
		s.othersFlow()
		hits := refused.Hits()
		refused.Remove()
		return hits
	}}
}

func dlqUnauthorised(fake *devstack.Fake) fault {
	set := poisoned
	set.dlqConfig = map[string]*string{}
	return fault{name: "DLQ unauthorised", setting: set, strike: func(s *scene) int {
		refused := fake.Cluster.Fault(kfake.Fault{
			Keys: []kmsg.Key{kmsg.Produce}, Topic: s.dlq, Err: kerr.TopicAuthorizationFailed, Count: -1,
		})
		s.await("retries", s.retries("kafka", "", 0))
		s.othersFlow()
		hits := refused.Hits()
		refused.Remove()
		return hits
	}}
}
