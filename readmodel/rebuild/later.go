package rebuild

import (
	"strings"

	"projector/readmodel/appended"
)

// later holds events that the live tables already contain, although they come after the positions
// in the topic. This happens if an operator set a position back with an earlier release of this
// program.
type later struct {
	all      bool // sums contain such events, and it is unknown in which rows
	accounts map[string]bool
	rows     map[appended.Key]bool
}

// Doubtful reports whether the live tables have rows or markers whose events the topic does not
// have before the positions of the live tables. The topic may have these events at later offsets.
func (s *Shadow) Doubtful() bool {
	c := s.found
	return len(c.unknown)+len(c.marked) > 0 || c.report.Kinds[Unknown] > 0
}

// Later notes an event that the topic has at or after the positions of the live tables. It reports
// whether a new comparison could now have another result.
func (s *Shadow) Later(accountID string, version int64, eventID string) bool {
	c := s.found
	if s.later.accounts == nil {
		s.later.accounts, s.later.rows = map[string]bool{}, map[appended.Key]bool{}
	}
	if d := c.accounts[accountID]; d != nil && d.kind == Unknown {
		s.later.accounts[strings.Clone(accountID)] = true
		return true
	}
	if c.marked[eventID] {
		s.later.all = true
		return true
	}
	if s.accounts == nil && s.inbox == nil {
		s.later.rows[appended.Key{Text: strings.Clone(accountID), Number: version}] = true
		return true
	}
	return false
}
