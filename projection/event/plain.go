package event

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// plainDocument reads the documents that nearly all messages are: what is looked for, and
// a few members besides that hold nothing, in ASCII and without escapes. Whatever else
// there may be, valid or not, it leaves to jsonScanner, by whose reading it is tested. It
// takes a third of the time.
type plainDocument struct {
	value []byte
	at    int
}

const (
	// mostPlain bounds the members of an object, and mostUnknown those that are not looked
	// for: names are compared one by one.
	mostPlain   = 64
	mostUnknown = 16
)

// scanPlain is jsonScanner.scan for plain documents; false: this one is not, or it is
// none at all, and found is empty.
func scanPlain(value []byte, sh *shape, found *members) bool {
	p := plainDocument{value: value}
	p.space()
	if p.object(sh, found) {
		if p.space(); p.at == len(value) {
			return true
		}
	}
	*found = members{}
	return false
}

// next is the byte that comes next; 0 at the end.
func (p *plainDocument) next() byte {
	if p.at < len(p.value) {
		return p.value[p.at]
	}
	return 0
}

// take reads a byte that has to come next.
func (p *plainDocument) take(c byte) bool {
	if p.next() != c {
		return false
	}
	p.at++
	return true
}

func (p *plainDocument) space() {
	for p.at < len(p.value) {
		switch p.value[p.at] {
		case ' ', '\t', '\r', '\n':
			p.at++
		default:
			return
		}
	}
}

// object reads an object of a shape.
func (p *plainDocument) object(sh *shape, found *members) bool {
	start := p.at
	if len(sh.members) > mostPlain || !p.take('{') {
		return false
	}
	names := plainNames{shape: sh}
	if p.space(); !p.take('}') {
		for {
			if !p.member(&names, found) {
				return false
			}
			p.space()
			if p.take('}') {
				break
			}
			if !p.take(',') {
				return false
			}
			p.space()
		}
	}
	if sh.self != memberNone {
		found[sh.self] = value{raw: p.value[start:p.at]}
	}
	return true
}

// member reads a name and what it names.
func (p *plainDocument) member(names *plainNames, found *members) bool {
	start := p.at
	if !p.text() {
		return false
	}
	m, unique := names.add(p.value[start:p.at])
	if !unique {
		return false
	}
	if p.space(); !p.take(':') {
		return false
	}
	p.space()
	start = p.at
	if m != nil && m.inner != nil && p.next() == '{' {
		return p.object(m.inner, found)
	}
	if !p.scalar() {
		return false
	}
	if m != nil && m.field != memberNone {
		found[m.field] = value{raw: p.value[start:p.at], verbatim: true}
	}
	return true
}

// plainNames are the names of an object's members so far.
type plainNames struct {
	shape   *shape
	hint    int
	known   uint64 // of the shape's members
	unknown [mostUnknown][]byte
	n       int
}

// add returns the member of the shape that has the name, nil when none has; and whether
// it is for certain the first of its name.
func (s *plainNames) add(quoted []byte) (m *shapeMember, unique bool) {
	if m = s.shape.next(quoted, s.hint); m == nil {
		for i := range s.shape.members {
			if s.shape.members[i].quoted == string(quoted) {
				m, s.hint = &s.shape.members[i], i
				break
			}
		}
	}
	if m != nil {
		bit := uint64(1) << s.hint
		unique = s.known&bit == 0
		s.known |= bit
		s.hint++
		return m, unique
	}
	for _, name := range s.unknown[:s.n] {
		if bytes.Equal(name, quoted) {
			return nil, false
		}
	}
	if s.n == mostUnknown {
		return nil, false
	}
	s.unknown[s.n] = quoted
	s.n++
	return nil, true
}

// scalar reads a value that holds no others.
func (p *plainDocument) scalar() bool {
	switch c := p.next(); {
	case c == '"':
		return p.text()
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	case c == 't':
		return p.literal("true")
	case c == 'f':
		return p.literal("false")
	case c == 'n':
		return p.literal("null")
	}
	return false
}

func (p *plainDocument) literal(word string) bool {
	if end := p.at + len(word); end <= len(p.value) && string(p.value[p.at:end]) == word {
		p.at = end
		return true
	}
	return false
}

func (p *plainDocument) number() bool {
	p.take('-')
	if !p.take('0') && !p.digits() {
		return false
	}
	if p.take('.') && !p.digits() {
		return false
	}
	if p.take('e') || p.take('E') {
		if !p.take('+') {
			p.take('-')
		}
		return p.digits()
	}
	return true
}

// digits reads at least one.
func (p *plainDocument) digits() bool {
	start := p.at
	for c := p.next(); c >= '0' && c <= '9'; c = p.next() {
		p.at++
	}
	return p.at > start
}

// text reads a string of ASCII without escapes.
func (p *plainDocument) text() bool {
	if !p.take('"') {
		return false
	}
	p.at += plainLength(p.value[p.at:])
	return p.take('"')
}

// plainLength is how many bytes stand before the first that is a control character, a
// quote, a backslash or no ASCII. Eight are looked at a time: the lowest byte that is
// marked is so for certain.
func plainLength(b []byte) int {
	const (
		ones  = 0x0101010101010101
		highs = 0x80 * ones
	)
	n := 0
	for ; len(b)-n >= 8; n += 8 {
		w := binary.LittleEndian.Uint64(b[n:])
		quote, backslash := w^'"'*ones, w^'\\'*ones
		marks := (w | (w-' '*ones)&^w | (quote-ones)&^quote | (backslash-ones)&^backslash) & highs
		if marks != 0 {
			return n + bits.TrailingZeros64(marks)/8
		}
	}
	for ; n < len(b); n++ {
		if c := b[n]; c < ' ' || c == '"' || c == '\\' || c >= 0x80 {
			break
		}
	}
	return n
}
