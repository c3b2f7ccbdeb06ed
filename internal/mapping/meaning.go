package mapping

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"projector/projection/event"
)

// meaning is the normal form of a mapping. It is equal for two files that differ only in comments
// and order. Its JSON is stored with the positions, so the JSON names must not change.
type meaning struct {
	Types    map[string]string `json:"types,omitempty"`
	Fields   map[string]place  `json:"fields,omitempty"`
	Time     string            `json:"time,omitempty"`
	Amount   string            `json:"amount,omitempty"`
	Nanos    []string          `json:"nanos,omitempty"`
	Lower    bool              `json:"lower_currency,omitzero"`
	Numeric  bool              `json:"numeric_currency,omitzero"`
	Path     []string          `json:"envelope,omitempty"`
	Escaped  bool              `json:"escaped,omitzero"`
	Entries  []string          `json:"entries,omitempty"`
	IsSeries bool              `json:"is_series,omitzero"` // true also for an empty Entries
	// FirstVersion is nil if it is not known. For example, earlier releases did not store it with
	// the positions.
	FirstVersion *int64 `json:"first_version,omitzero"`
}

type place struct {
	Path     []string `json:"path,omitempty"`
	Header   string   `json:"header,omitempty"`
	Key      bool     `json:"key,omitzero"`
	Record   bool     `json:"record,omitzero"`
	Outer    []string `json:"outer,omitempty"`
	Constant string   `json:"constant,omitempty"`
	Join     []place  `json:"join,omitempty"`
	With     string   `json:"with,omitempty"`
	Type     string   `json:"type,omitempty"`
	Optional bool     `json:"optional,omitzero"`
}

func placeOf(p event.FieldPath) place {
	made := place{Path: p.Path, Header: p.Header, Key: p.Key, Record: p.Record, Outer: p.Outer, Constant: p.Constant, Type: p.Written.String(), Optional: p.Optional}
	for _, part := range p.Join {
		made.Join = append(made.Join, placeOf(part))
	}
	if p.Separator != 0 {
		made.With = string(rune(p.Separator))
	}
	return made
}

func meaningOf(of *Mapping) meaning {
	m := &of.Mapping
	made := meaning{
		FirstVersion: of.FirstVersion,
		Types:        map[string]string{}, Fields: map[string]place{}, Nanos: m.Amount.Nanos,
		Lower: m.Currency == event.CurrencyLower, Numeric: m.Currency == event.CurrencyNumeric,
		Path: m.Envelope.Path, Escaped: m.Envelope.Escaped, Entries: m.Envelope.Entries, IsSeries: m.Envelope.Entries != nil,
	}
	if m.Time != event.RFC3339 {
		made.Time = m.Time.String()
	}
	if m.Amount.Form != event.AmountText || m.Amount.DropZeros {
		made.Amount = m.Amount.String()
	}
	for name, kind := range m.Types {
		made.Types[name] = nameOf(kind)
	}
	for name, s := range m.Signed {
		made.Types[name] = nameOf(s.Positive) + "/" + nameOf(s.Negative) + "/" + nameOf(s.Zero)
	}
	for field, p := range m.Fields {
		made.Fields[field.String()] = placeOf(p)
	}
	return made
}

func nameOf(kind event.Type) string {
	if kind == event.Ignorable {
		return ignored
	}
	return kind.Name()
}

// Meaning returns the normal form of the mapping as JSON. The text is equal for two files that
// differ only in comments and order. It is {} without a mapping and without a first version.
func (m *Mapping) Meaning() string {
	text, err := json.Marshal(meaningOf(m), json.Deterministic(true))
	if err != nil {
		panic("mapping: its meaning as JSON: " + err.Error()) // cannot fail for these types
	}
	return string(text)
}

// SHA256 returns the hash of the text of Meaning, in hex.
func (m *Mapping) SHA256() string {
	sum := sha256.Sum256([]byte(m.Meaning()))
	return hex.EncodeToString(sum[:])
}

// Differs compares this mapping with another one. The parameter stored is the text that Meaning
// returned for the other mapping. If events are read differently with the two mappings, or if the
// first versions differ, the results name the flags that differ. The first result names the flags
// of the other mapping, and the second result the flags of this one. Otherwise both results are
// empty. A first version that is not known does not count as a difference.
func (m *Mapping) Differs(stored string) (was, is string) {
	var before meaning
	err := json.Unmarshal([]byte(stored), &before)
	now := meaningOf(m)
	var flags, flagsNow []string
	if err != nil || !m.readsLike(now, before) {
		flags, flagsNow = append(flags, "another --mapping (EVENT_MAPPING)"), append(flagsNow, "--mapping=FILE")
	}
	if a, b := before.FirstVersion, now.FirstVersion; a != nil && b != nil && *a != *b {
		flags = append(flags, fmt.Sprintf("--first-version=%d (FIRST_VERSION)", *a))
		flagsNow = append(flagsNow, fmt.Sprintf("--first-version=%d", *b))
	}
	return strings.Join(flags, " and "), strings.Join(flagsNow, " ")
}

// readsLike compares the new mapping (the parameter now) with the old mapping (before). It reports
// whether both mappings read events in the same way. Events of added types are not compared. The
// result is false if only one of the mappings gives a type of the contract another name, because
// that mapping does not recognise the type's own name. For a custom projection the result is also
// false if types were added, because the projection has already ignored their events.
func (m *Mapping) readsLike(now, before meaning) bool {
	if m.Custom && !maps.Equal(now.Types, before.Types) {
		return false
	}
	for name, means := range before.Types {
		if now.Types[name] != means {
			return false
		}
	}
	for _, kind := range event.NamedTypes() {
		if now.reads(kind.Name()) != before.reads(kind.Name()) {
			return false
		}
	}
	before.Types, now.Types = nil, nil
	before.FirstVersion, now.FirstVersion = nil, nil
	a, errA := json.Marshal(before, json.Deterministic(true))
	b, errB := json.Marshal(now, json.Deterministic(true))
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// reads returns the type that the mapping gives to a name of the contract. It returns "" if the
// mapping has only other names for that type.
func (m *meaning) reads(name string) string {
	if means, is := m.Types[name]; is {
		return means
	}
	for means := range maps.Values(m.Types) {
		if slices.Contains(strings.Split(means, "/"), name) {
			return ""
		}
	}
	return name
}
