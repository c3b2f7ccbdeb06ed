package operators_test

import (
	"fmt"
	"slices"
)

// newMapping changes what the mapping says about the type unknown, as docs/mapping.md and
// docs/upgrading.md say. Instances whose mapping has only an added type are replaced one after another.
// The others are stopped, and their rows are rebuilt, or the new mapping is accepted.
func (s *stage) newMapping() {
	s.t.Helper()
	if s.rules.ignoring { // the operator's setting counts
		return
	}
	was := s.rules.means
	s.rules.remapped = true
	s.rules.means = pick(s, slices.DeleteFunc([]string{"", ignorable, credit}, func(means string) bool { return means == was }))
	s.note("the mapping of %s was %q and is %q", unknown, was, s.rules.means)
	s.mapping = ""
	if s.rules.means != "" {
		s.mapping = s.file("mapping.yaml", fmt.Sprintf("eventTypes: {%[1]s: %[1]s, %[2]s: %[3]s}\n", credit, unknown, s.rules.means))
	}
	var others []*reader
	for _, r := range s.readers {
		s.endSecond(r)
		if s.changes(r, was) != nil || s.rnd.IntN(3) == 0 {
			r.process.Terminate()
			others = append(others, r)
			continue
		}
		added := s.launch(r)
		calm := pick(s, s.producer.calm)
		s.producer.send(s.producer.goods(calm, 3)) // all instances know the types of these
		r.process.Terminate()
		r.process = added
	}
	s.producer.produce(2)
	for _, r := range others {
		accept := s.changes(r, was)
		if accept != nil && s.rnd.IntN(2) == 0 && s.rebuild(r) {
			accept = nil
			s.count("new mapping: by a rebuild", true)
		}
		r.process = s.launch(r, accept...)
	}
	s.producer.produce(2)
	s.count("new mapping", true)
}

// changes returns the flag that makes an instance continue if its projection reads stored events
// differently than with the earlier meaning of the type unknown. Otherwise it returns nil. An added type
// changes only a custom projection.
func (s *stage) changes(r *reader, was string) []string {
	builtIn := s.readers[:3]
	if was == s.rules.means || was == "" && slices.Contains(builtIn, r) {
		return nil
	}
	return []string{"--accept-changed-mapping"}
}
