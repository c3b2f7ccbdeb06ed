package mapping

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"projector/projection/event"
)

// addEntries adds the first objects of an array, at most mostTexts, to the samples.
func (s *Samples) addEntries(path string, entries []map[string]jsontext.Value, depth int) {
	inner := s.arrays[path]
	if inner == nil {
		inner = &Samples{}
		inner.begin()
		s.arrays[path] = inner
	}
	for _, entry := range entries[:min(len(entries), mostTexts)] {
		inner.beginRow()
		inner.flatten("", entry, depth)
	}
}

// envelope proposes the first array whose entries have an account and an amount. It proposes none
// if the record itself has both. It returns the samples among which the fields are found.
func (w *suggesting) envelope(s *Samples) map[string]*sample {
	chosen := ""
	for _, path := range slices.Sorted(maps.Keys(s.arrays)) {
		switch {
		case chosen != "" || s.isMovement() || !s.arrays[path].isMovement():
			w.decide("%s is an array of objects. If each is an event, write envelope: {entries: %s}, and give the paths of its fields in an entry", path, path)
		default:
			chosen = path
			w.line("envelope: {entries: %s}", quoteYAML(path))
			w.decide("%s: is each entry of it an event, with its own account and version?", path)
		}
	}
	if chosen == "" {
		if s.CloudEvents {
			w.data = inData
		}
		w.rows = s.rows
		return s.values
	}
	w.rows = s.arrays[chosen].rows
	all := maps.Clone(s.arrays[chosen].values)
	for path, p := range s.values {
		outer := *p
		outer.outer = true
		if all[path] == nil || guesses[0].names[0] == plainName(path) || plainName(path) == "id" { // the record's own id
			all[path] = &outer
		}
	}
	return all
}

// isMovement reports whether both an account and an amount were found.
func (s *Samples) isMovement() bool {
	found := 0
	for i := range guesses {
		if g := &guesses[i]; g.field == event.FieldAccountID || g.field == event.FieldAmount {
			if g.find(s.values, map[string]bool{}) != nil {
				found++
			}
		}
	}
	return found == 2
}

// source returns YAML that says where the value of a sample is. The result inTable is one member of
// a field's table. The result alone is the whole value of the field.
func (p *sample) source() (inTable, alone string) {
	path := quoteYAML(p.path)
	if p.outer {
		return "outer: " + path, "{outer: " + path + "}"
	}
	return "path: " + path, path
}

// part returns the YAML for a sample that is one part of a joined field.
func (p *sample) part() string {
	inTable, alone := p.source()
	if p.hasKind('0') {
		return "{" + inTable + ", type: integer}"
	}
	return alone
}

func (w *suggesting) joinedAccount() {
	var list []string
	for _, p := range w.account {
		list = append(list, p.part())
	}
	w.line("  accountId: {join: [%s], with: \"/\"}", strings.Join(list, ", "))
	w.decide("accountId: are all of these parts of the account's id? Only the last may contain the separator")
}

// These members are often a part of an account id or of an event type. Their names are in lower
// case, without _ and -.
var (
	accountParts = []string{"bank", "bankcode", "bic", "blz", "branch", "sortcode", "ledger", "entity", "tenant"}
	typeParts    = []string{"direction", "dir", "side", "sign", "creditdebit", "debitcredit", "drcr", "dc", "subtype", "op"}
)

// joins asks about members that may have to be joined with the account id or the event type.
func (w *suggesting) joins() {
	for _, join := range []struct {
		field event.Field
		names []string
		ask   string
	}{
		{event.FieldAccountID, accountParts, "can two accounts have the same id, of different"},
		{event.FieldEventType, typeParts, "does what an event means also depend on"},
	} {
		whole := w.found[join.field]
		if whole == nil {
			continue
		}
		for _, path := range slices.Sorted(maps.Keys(w.values)) {
			p := w.values[path]
			if p == whole || !slices.Contains(join.names, plainName(path)) {
				continue
			}
			part, last := p.part(), whole.part()
			if join.field == event.FieldEventType {
				part, last = last, part
			}
			w.decide("%s: %s %s? Then write {join: [%s, %s], with: \"/\"}", join.field, join.ask, p.path, part, last)
		}
	}
}
