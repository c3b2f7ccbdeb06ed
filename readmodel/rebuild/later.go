package rebuild

import (
	"encoding/json"
	"strings"

	"projector/readmodel/appended"
)

// later is what the live tables have and the topic has only beyond the positions. A release that
// set back how far records were processed, together with a position, has left it so.
type later struct {
	all      bool // rows add up such events, and it is not known which rows
	accounts map[string]bool
	rows     map[appended.Key]bool
}

// Doubtful reports whether something seems to have no event that may come later in the topic.
func (s *Shadow) Doubtful() bool {
	c := s.found
	return len(c.unknown)+len(c.marked) > 0 || c.report.Kinds[Unknown] > 0
}

// Later adds an event that lies beyond the positions, and reports whether that changes what a
// comparison finds.
func (s *Shadow) Later(accountID string, version int64, eventID string) bool {
	c := s.found
	if s.later.accounts == nil {
		s.later.accounts, s.later.rows = map[string]bool{}, map[appended.Key]bool{}
	}
	if d := c.accounts[accountID]; d != nil && d.kind == Unknown {
		s.later.accounts[strings.Clone(accountID)] = true
		return true
	}
	if c.marked["("+eventID+")"] || c.marked[eventID] {
		s.later.all = true
		return true
	}
	if s.accounts == nil && s.inbox == nil {
		s.later.rows[appended.Key{Text: strings.Clone(accountID), Number: version}] = true
		return true
	}
	return false
}

// has reports whether the event of a row, by its key, comes later.
func (l *later) has(key string) bool {
	var k struct {
		Text   string `json:"account_id"`
		Number int64  `json:"version"`
	}
	return len(l.rows) > 0 && json.Unmarshal([]byte(key), &k) == nil && l.rows[appended.Key(k)]
}
