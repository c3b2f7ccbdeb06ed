package operators_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"

	"projector/e2e/wait"
)

// retention removes the first records of a partition. Every consumer has processed them, but it may not
// have committed that to Kafka. From then on no projection can be rebuilt, so it happens late.
func (s *stage) retention() {
	s.t.Helper()
	if !s.late {
		return
	}
	p := s.rnd.IntN(len(s.log))
	start := s.start[p] + s.rnd.Int64N(int64(len(s.log[p]))-s.start[p]+1)
	s.note("records of partition %d before %d are removed", p, start)
	offsets := kadm.Offsets{}
	offsets.AddOffset(s.topic, int32(p), start, -1)
	answers, err := s.admin.DeleteRecords(s.t.Context(), offsets)
	if err := errors.Join(err, answers.Error()); err != nil {
		s.t.Fatal(err)
	}
	s.start[p] = start
	s.saved = nil // its positions may be before the start
	s.producer.produce(2)
	s.count("retention", true)
}

// shortened reports whether retention has removed records.
func (s *stage) shortened() bool { return slices.Max(s.start) > 0 }

// recreate deletes the topic and creates it again, and sets the positions, as docs/runbook.md says. The
// commands for dead letters are not tested after that, because the oracles name an event by its offset.
func (s *stage) recreate() {
	s.t.Helper()
	s.note("-- the topic is deleted and created again")
	if _, err := s.admin.DeleteTopic(s.t.Context(), s.topic); err != nil {
		s.t.Fatal(err)
	}
	wait.Until(s.t, patience, "the topic is created again", func() string {
		if _, err := s.admin.CreateTopic(s.t.Context(), int32(len(s.log)), -1, nil, s.topic); err != nil {
			return err.Error()
		}
		return ""
	})
	s.connect() // a producer keeps the id of a topic
	s.log, s.start = make([][]*event, len(s.log)), make([]int64, len(s.log))
	for _, r := range s.readers {
		r.next, r.high = slices.Clone(s.start), slices.Clone(s.start)
		switch o := r.oracle.(type) {
		case *ordered:
			o.letters, o.discarded = nil, map[place]bool{}
			for _, a := range o.accounts {
				a.overran = a.beyond > a.version
			}
		case *unordered:
			o.letters, o.discarded = nil, map[place]bool{}
		}
	}
	s.producer.produce(3 * s.rnd.IntN(4))
	if s.rnd.IntN(2) == 0 {
		s.stopped()
	}
	var readers []*reader
	for _, r := range s.readers {
		var p printed
		for tries := 0; tries == 0 || tries < 20 && strings.Contains(p.stderr, "does not exist on these brokers"); tries++ { // a broker may not know it yet
			p = s.draw("position set", r, "--all", "--start", "--new-topic", reason, "--yes")
		}
		if p.done() {
			readers = append(readers, r)
		} else if !r.additive || !s.pruning { // the inbox may no longer have the ids of the events
			s.t.Errorf("%s does not continue in the new topic", r.name)
		}
	}
	for i := range 3 {
		s.producer.produce(5)
		for _, r := range readers {
			s.arrived(r)
			s.sameBut(r)
		}
		if r := pick(s, readers); i < 2 {
			pick(s, []func(*reader){s.kill, func(r *reader) { s.restart(r) }, s.rewind})(r)
		}
	}
	s.count("topic", true)
}

// stopped waits until each consumer has noticed that the topic is another one.
func (s *stage) stopped() {
	s.t.Helper()
	for _, r := range s.readers {
		wait.Until(s.t, patience, r.name+" has stopped", func() string {
			p := s.run(append([]string{"position", "list"}, s.readerFlags("position list", r)...)...)
			for _, l := range lines[struct {
				Partition int
				State     string
			}](s, p.stdout) {
				if l.State != "stopped" {
					return fmt.Sprintf("partition %d is %s", l.Partition, l.State)
				}
			}
			return ""
		})
	}
}

// sameBut expects the rows of the reader's projection to equal those of its oracle, but for the accounts
// that were beyond the park limit: their events are read again from the topic, which may not have them.
func (s *stage) sameBut(r *reader) {
	s.t.Helper()
	wait.Until(s.t, exactWithin, r.name+" in the new topic holds what its oracle says", func() string {
		got, err := s.rows(r)
		if err != nil {
			return err.Error()
		}
		switch o := r.oracle.(type) {
		case *unordered:
			o.choose(got)
			return different(got, r.want(), s.events)
		case *ordered:
			if s.fetching && r == s.readers[0] {
				o.fetchAll(s.producer.published)
			}
			want := r.want()
			for id, a := range o.accounts {
				if a.overran {
					delete(got, id)
					delete(want, id)
				}
			}
			return different(got, want, s.events)
		}
		return "an unknown oracle"
	})
}
