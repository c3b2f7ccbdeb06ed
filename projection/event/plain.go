package event

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// plainDocument reads documents of the form that nearly all messages have. They are ASCII without
// escapes and have only a few members that are not fields. These members are not objects or arrays.
// jsonScanner reads all other documents and is three times slower. Tests compare the results of
// plainDocument and jsonScanner.
type plainDocument struct {
	value []byte
	at    int
	// names has the place of each name that is not in the shape. These are the names in all open
	// objects, beginning with the outermost object.
	names [mostUnknown]struct{ start, end int32 }
	named int
}

const (
	// These limits are small because names are compared one by one. mostPlain limits the members of
	// each object in the shape. mostUnknown limits the members that are not in the shape, added up
	// over all open objects.
	mostPlain   = 64
	mostUnknown = 16
)

// scanPlain does the same as jsonScanner.scan, but only for plain documents. If the document is not
// plain or not valid, it returns false and found is empty.
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

// next returns the next byte, or 0 at the end.
func (p *plainDocument) next() byte {
	if p.at < len(p.value) {
		return p.value[p.at]
	}
	return 0
}

// accept reads the next byte if it is c.
func (p *plainDocument) accept(c byte) bool {
	if p.next() != c {
		return false
	}
	p.at++
	return true
}

func (p *plainDocument) space() {
	if p.next() <= ' ' { // rare
		p.skipSpace()
	}
}

func (p *plainDocument) skipSpace() {
	for p.at < len(p.value) && bytes.IndexByte([]byte(whiteSpace), p.value[p.at]) >= 0 {
		p.at++
	}
}

func (p *plainDocument) object(sh *shape, found *members) bool {
	start := p.at
	if len(sh.members) > mostPlain || !p.accept('{') {
		return false
	}
	names := plainNames{shape: sh, first: p.named}
	if p.space(); !p.accept('}') {
		for {
			if !p.member(&names, found) {
				return false
			}
			p.space()
			if p.accept('}') {
				p.named = names.first
				break
			}
			if !p.accept(',') {
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

func (p *plainDocument) member(names *plainNames, found *members) bool {
	m, ok := p.name(names)
	if !ok {
		return false
	}
	if p.space(); !p.accept(':') {
		return false
	}
	p.space()
	start := p.at
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

// plainNames contains the names that an object has had so far.
type plainNames struct {
	shape *shape
	hint  int    // index of the member that is expected next
	known uint64 // one bit for each member of the shape that was seen
	first int    // index in plainDocument.names of the object's first name
}

// name reads a name and returns the member of the shape with this name, or nil if there is none. It
// returns false if the name is not plain, if the object has the name twice, or if there are too
// many names that are not in the shape.
func (p *plainDocument) name(names *plainNames) (m *shapeMember, ok bool) {
	members := names.shape.members
	if i := names.hint; i < len(members) && members[i].begins(p.value[p.at:]) {
		p.at += len(members[i].quoted)
		return &members[i], names.add(i)
	}
	for i := range members {
		if members[i].begins(p.value[p.at:]) {
			p.at += len(members[i].quoted)
			return &members[i], names.add(i)
		}
	}
	start := p.at
	if !p.text() {
		return nil, false
	}
	quoted := p.value[start:p.at]
	for _, name := range p.names[names.first:p.named] {
		if bytes.Equal(p.value[name.start:name.end], quoted) {
			return nil, false
		}
	}
	if p.named == mostUnknown {
		return nil, false
	}
	p.names[p.named] = struct{ start, end int32 }{int32(start), int32(p.at)} //nolint:gosec // G115: a record is smaller
	p.named++
	return nil, true
}

// add stores that the object has a member of the shape. It returns false if the object already had
// the member.
func (s *plainNames) add(i int) bool {
	bit := uint64(1) << i
	first := s.known&bit == 0
	s.known |= bit
	s.hint = i + 1
	return first
}

// scalar reads a value that is not an object or an array.
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
	p.accept('-')
	if !p.accept('0') && !p.digits() {
		return false
	}
	switch p.next() {
	case '.', 'e', 'E':
		return p.fraction()
	}
	return true
}

// fraction reads the part of a number after the integer.
func (p *plainDocument) fraction() bool {
	if p.accept('.') && !p.digits() {
		return false
	}
	if p.accept('e') || p.accept('E') {
		if !p.accept('+') {
			p.accept('-')
		}
		return p.digits()
	}
	return true
}

// digits reads one or more digits.
func (p *plainDocument) digits() bool {
	start, at := p.at, p.at
	for at < len(p.value) && p.value[at]-'0' <= 9 {
		at++
	}
	p.at = at
	return at > start
}

// text reads a string of ASCII without escapes.
func (p *plainDocument) text() bool {
	if !p.accept('"') {
		return false
	}
	p.at += plainLength(p.value[p.at:])
	return p.accept('"')
}

// plainLength returns the number of bytes before the first control character, quote, backslash or
// byte that is not ASCII. It checks eight bytes at a time. A carry in the 64-bit arithmetic may
// also mark bytes after the first match, so only the lowest mark counts.
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
