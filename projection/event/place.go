package event

import "strings"

// placeKind says in which part of a message a field stands.
type placeKind uint8

const (
	nowhere    placeKind = iota
	inDocument           // a member of the JSON document
	inHeader
	inKey
)

// place is where a format finds a field.
type place struct {
	kind    placeKind
	path    []string // of a member: the names that lead to it, outermost first
	header  string
	quoted  bool   // a header or key may be JSON, as Kafka Connect's JsonConverter writes it
	name    string // what a fault calls it
	missing string // what a fault says when it is not there; empty for the usual
}

// How a fault names what does not stand in the document.
const (
	nameKey    = "key"
	nameHeader = "header "
)

// member is a place in the document, by the names that lead to it.
func member(path ...string) place {
	return place{kind: inDocument, path: path, name: strings.Join(path, ".")}
}

// reasonMissing is what a fault says of a field that is not there.
func (p *place) reasonMissing() string {
	if p.missing != "" {
		return p.missing
	}
	return reasonMissing
}
