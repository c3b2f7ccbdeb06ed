package mapping

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"projector/projection/event"
)

// Samples collects what was seen in records, so that a mapping can be proposed for them.
type Samples struct {
	// CloudEvents means that the proposal is for the format cloudevents.
	CloudEvents bool

	records int
	unread  int                // number of records that are not a JSON object
	values  map[string]*sample // by path in the value
	headers map[string]*sample
	arrays  map[string]*Samples // the entries of arrays of objects, by path
	keys    bool                // some records have a key
	rows    []map[string]string // what the first records, or entries, have at each path, without null; at most mostRows
	row     map[string]string   // the last of rows; nil if there are more records
}

// sample is what was seen at one path.
type sample struct {
	path   string
	outer  bool // the path is in the document around an array of entries
	seen   int
	kinds  map[jsontext.Kind]int
	texts  map[string]int // at most mostTexts different ones
	whole  bool           // every number is an integer
	digits int            // length of the longest number
	inside bool           // at least one text holds a JSON object
}

// mostTexts limits how many different texts are stored for a path. This is usually enough for event
// types, because most producers have only a few.
const mostTexts = 12

// mostRows limits the records that are stored to compare the amounts of event types.
const mostRows = 1000

func (s *Samples) beginRow() {
	if s.row = nil; len(s.rows) < mostRows {
		s.row = map[string]string{}
		s.rows = append(s.rows, s.row)
	}
}

// Add adds a record to the samples.
func (s *Samples) Add(m event.Message) {
	s.begin()
	if m.Value == nil {
		return
	}
	s.records++
	s.keys = s.keys || len(m.Key) > 0
	s.beginRow()
	document := s.addHeaders(m)
	var object map[string]jsontext.Value
	if json.Unmarshal(event.WithoutSchemaID(m.Value), &object) != nil {
		s.unread++
		return
	}
	if _, is := object["payload"]; is && len(object) == 2 {
		delete(object, "schema") // the schema that Kafka Connect's JsonConverter adds
	}
	s.flatten(document, object, 0)
}

// addHeaders adds the headers. It returns the path of the value: in a CloudEvent in binary mode, the
// headers are the attributes, and the value is the data.
func (s *Samples) addHeaders(m event.Message) (document string) {
	isBinary := s.CloudEvents && !event.IsStructuredCloudEvent(m.Headers)
	for _, h := range m.Headers {
		text, _ := jsontext.AppendQuote(nil, h.Value)
		if name, is := strings.CutPrefix(h.Key, "ce_"); is && isBinary {
			s.note(name, text)
		} else {
			note(s.headers, h.Key, text)
		}
	}
	if isBinary {
		return inData
	}
	return ""
}

// inData is the path of the data in a CloudEvent.
const inData = "data"

func (s *Samples) begin() {
	if s.values == nil {
		s.values, s.headers, s.arrays = map[string]*sample{}, map[string]*sample{}, map[string]*Samples{}
	}
}

const mostDepth = 6

func (s *Samples) flatten(prefix string, object map[string]jsontext.Value, depth int) {
	for name, v := range object {
		if name == "" || strings.Contains(name, ".") { // such a path cannot be written with points
			continue
		}
		path := strings.TrimPrefix(prefix+"."+name, ".")
		var inner map[string]jsontext.Value
		if v.Kind() == '{' && depth < mostDepth && json.Unmarshal(v, &inner) == nil {
			s.flatten(path, inner, depth+1)
			continue
		}
		var entries []map[string]jsontext.Value
		if v.Kind() == '[' && json.Unmarshal(v, &entries) == nil && len(entries) > 0 {
			s.addEntries(path, entries, depth+1)
			continue
		}
		s.note(path, v)
	}
}

func (s *Samples) note(path string, v jsontext.Value) {
	if text := note(s.values, path, v); s.row != nil && v.Kind() != 'n' {
		s.row[path] = text
	}
}

// note adds a value to the sample of its path. It returns the value as text.
func note(all map[string]*sample, path string, v jsontext.Value) string {
	p := all[path]
	if p == nil {
		p = &sample{path: path, kinds: map[jsontext.Kind]int{}, texts: map[string]int{}, whole: true}
		all[path] = p
	}
	p.seen++
	p.kinds[v.Kind()]++
	text := string(v)
	if v.Kind() == '"' {
		unquoted, err := jsontext.AppendUnquote(nil, v)
		if err != nil {
			return ""
		}
		text = string(unquoted)
	}
	if v.Kind() == '0' {
		p.whole = p.whole && !strings.ContainsAny(text, ".eE")
		p.digits = max(p.digits, len(strings.TrimPrefix(text, "-")))
	}
	p.inside = p.inside || v.Kind() == '"' && strings.HasPrefix(text, "{") && jsontext.Value(text).IsValid()
	if p.texts[text] > 0 || len(p.texts) < mostTexts {
		p.texts[text]++
	}
	return text
}

// repeats reports whether one of the stored texts was seen more than once.
func (p *sample) repeats() bool {
	for _, n := range p.texts {
		if n > 1 {
			return true
		}
	}
	return false
}

// hasKind reports whether at least one value of the path is of the given JSON kind, and all its
// other values are null.
func (p *sample) hasKind(kind jsontext.Kind) bool {
	return p.kinds[kind] > 0 && p.kinds[kind]+p.kinds['n'] == p.seen
}

// Suggest proposes a mapping in YAML, and lists the decisions that a person has to make. `mapping
// check` refuses the proposal until the most important decisions are made. The proposal contains no
// values of the records except values of the event type that look like names. If payload is true,
// it contains all stored values of the event type, which are at most mostTexts.
func (s *Samples) Suggest(payload bool) (text string, decide []string) {
	w := &suggesting{payload: payload}
	w.line("# Proposed from %d records. Nothing uses it: decide what is marked DECIDE, then run", s.records)
	w.line("# projector mapping check FILE, and projector inspect --mapping=FILE --show-payload.")
	if s.unread > 0 {
		w.decide("%d of the records are no JSON objects; they were not looked at", s.unread)
	}
	values := withoutConnector(w.envelope(s))
	for _, path := range slices.Sorted(maps.Keys(values)) {
		if p := values[path]; p.inside && !p.outer {
			w.decide("%s is a text that holds JSON. If the event is in it, write envelope: {path: %s, escaped: true}, and give the paths of its fields in it",
				path, quoteYAML(path))
		}
	}
	w.line("fields:")
	w.find(s, values)
	for i := range guesses {
		w.propose(guesses[i].field, s.keys)
	}
	w.joins()
	w.unused()
	w.line("  data: %s", quoteYAML(w.data))
	w.types(w.found[event.FieldEventType], w.found[event.FieldAmount])
	return w.text.String(), w.decisions
}

type suggesting struct {
	payload   bool
	data      string              // path of the object in which the paths of amount and currency begin
	rows      []map[string]string // see Samples
	text      strings.Builder
	decisions []string

	values  map[string]*sample      // among which the fields were found
	found   map[event.Field]*sample // nil if the field is in a header
	taken   map[string]bool         // paths of the samples in found
	account []*sample               // members of an account object, if no account id was found
}

// find searches each field first among the values and then among the headers.
func (w *suggesting) find(s *Samples, values map[string]*sample) {
	w.values, w.taken, w.found = values, map[string]bool{}, map[event.Field]*sample{}
	take := func(field event.Field, p *sample) { w.taken[p.path], w.found[field] = true, p }
	for i := range guesses {
		g := &guesses[i]
		if p := g.find(values, w.taken); p != nil {
			take(g.field, p)
		} else if p := g.find(s.headers, map[string]bool{}); p != nil {
			w.line("  %s: {header: %s}", g.field, quoteYAML(p.path))
			w.found[g.field] = nil
		}
	}
	if _, is := w.found[event.FieldEventID]; !is {
		if p := distinct(values); p != nil && !w.taken[p.path] {
			take(event.FieldEventID, p)
		}
	}
	if _, is := w.found[event.FieldAccountID]; !is {
		w.account = accountObject(values)
		for _, p := range w.account {
			w.taken[p.path] = true
		}
		if len(w.account) == 1 {
			take(event.FieldAccountID, w.account[0])
		}
	}
}

// propose writes the proposal for a field. The parameter keys is true if some records have keys.
func (w *suggesting) propose(field event.Field, keys bool) {
	p, is := w.found[field]
	switch {
	case is && p != nil:
		w.field(field, p)
	case is: // find has already written a field that is in a header
	case field == event.FieldAccountID && len(w.account) > 1:
		w.joinedAccount()
	case field == event.FieldAccountID && keys:
		w.line("  accountId: {key: true}")
		w.decide("accountId: is the record's key the account's id? If it is put together from several fields: {join: [A, B], with: \"/\"}")
	case field == event.FieldCurrency:
		w.line("  currency: {constant: DECIDE}")
		w.decide("currency: none was found; is it always the same one?")
	case field == event.FieldAmount:
		w.line("  # amount: PATH")
		w.decide("amount: none was found, and each credit and debit needs one; more records may have one (--limit)")
	case field != event.FieldCorrelationID:
		w.line("  # %s: PATH", field)
		w.decide("%s: none was found, and every event needs one", field)
	}
}

func (w *suggesting) line(format string, args ...any) {
	_, _ = fmt.Fprintf(&w.text, format+"\n", args...)
}

func (w *suggesting) decide(format string, args ...any) {
	text := strings.Map(func(r rune) rune { // names may have characters that YAML does not allow
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, fmt.Sprintf(format, args...))
	w.line("  # DECIDE %s", text)
	w.decisions = append(w.decisions, text)
}

func quoteYAML(text string) string {
	plain := text != ""
	for _, c := range text {
		plain = plain && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-' || c == '/')
	}
	if plain && text[0] != '-' && text[0] != '.' {
		return text
	}
	return strconv.Quote(text) // its escapes are those of YAML too, unlike JSON's for control characters
}
