package operators_test

import (
	"syscall"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// freeze stops an instance with SIGSTOP until another instance has processed all records.
func (s *stage) freeze(r *reader) {
	s.t.Helper()
	frozen := r.process
	if r.second == nil {
		r.second = s.launch(r)
	}
	s.producer.produceCalm(2)
	s.note("SIGSTOP of %s", r.name)
	frozen.Freeze()
	r.killed = true // another instance may read again what this one has not committed
	s.producer.produceCalm(2)
	if s.rnd.IntN(2) == 0 {
		s.rebuild(r)
	}
	s.producer.produce(2)
	s.arrived(r)
	s.note("SIGCONT of %s", r.name)
	frozen.Signal(syscall.SIGCONT)
	s.producer.produce(2)
	s.count("SIGSTOP", true)
}

// refusedByKafka makes kfake refuse one kind of requests while events arrive and an operator runs a
// command.
func (s *stage) refusedByKafka(r *reader) {
	s.t.Helper()
	if s.fake == nil {
		return
	}
	fault := pick(s, []kfake.Fault{
		{Keys: []kmsg.Key{kmsg.Produce}, Topic: s.topic + ".dlq", Err: kerr.NotEnoughReplicas},
		{Keys: []kmsg.Key{kmsg.Produce}, Topic: s.topic + ".dlq", Err: kerr.RequestTimedOut},
		{Keys: []kmsg.Key{kmsg.Fetch}, Topic: s.topic, Err: kerr.NotLeaderForPartition},
		{Keys: []kmsg.Key{kmsg.OffsetCommit}, Group: r.group, Err: kerr.RequestTimedOut},
		{Keys: []kmsg.Key{kmsg.OffsetFetch}, Group: r.group, Err: kerr.CoordinatorLoadInProgress},
		{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: s.topic, Err: kerr.LeaderNotAvailable},
		{Keys: []kmsg.Key{kmsg.Heartbeat}, Group: r.group, Err: kerr.RebalanceInProgress},
	})
	fault.Count = -1
	s.note("Kafka refuses %v with %v", fault.Keys, fault.Err)
	refused := s.fake.Cluster.Fault(fault)
	s.producer.produceCalm(2)
	switch s.rnd.IntN(5) {
	case 0:
		s.kill(r)
	case 1:
		s.rebuild(r)
	case 2:
		s.replay(r)
	case 3:
		s.rewind(r)
	default:
		s.correct(r)
	}
	s.producer.plain = fault.Keys[0] == kmsg.ListOffsets // the method ended needs these requests
	s.producer.produce(3)
	s.producer.plain = false
	refused.Remove()
	s.count("refused by Kafka", true)
}
