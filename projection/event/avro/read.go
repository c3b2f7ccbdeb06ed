package avro

import (
	"math"
	"unsafe"

	"projector/projection/event"
)

const (
	// Values of some types have no bytes: null, a record without fields, and a record of such
	// records. So the size of a value does not limit the time to read it, and the number of steps
	// is limited instead.
	freeSteps    = 100_000
	stepsPerByte = 16
	// maxDepth limits the nesting of records, arrays, maps and unions.
	maxDepth = 1000
)

const (
	reasonShort  = "the value ends before its schema does"
	reasonBroken = "the value does not follow its schema"
	reasonSteps  = "reading the value takes more steps than its size allows"
)

// reading is the state of reading one value. After the first error, reading stops and the values in
// the field found are not used.
type reading struct {
	rest   []byte
	found  *event.Values
	steps  int // number of steps that are left
	depth  int
	reason string
}

// fail sets the reason why the value cannot be read, and ends reading.
func (r *reading) fail(reason string) {
	if r.reason == "" {
		r.reason = reason
	}
	r.rest = nil
}

// step counts one step for each value. It returns false after an error.
func (r *reading) step() bool {
	if r.steps--; r.steps < 0 {
		r.fail(reasonSteps)
	}
	return r.reason == ""
}

// enter counts a value that contains other values, and checks the depth. The caller must call leave
// after each call of enter.
func (r *reading) enter() bool {
	if r.depth++; r.depth > maxDepth {
		r.fail(reasonBroken)
	}
	return r.step()
}

func (r *reading) leave() { r.depth-- }

func (r *reading) skip(n *node) {
	switch n.kind {
	case kindRecord, kindUnion, kindArray, kindMap:
		if r.enter() {
			r.skipInner(n)
		}
		r.leave()
	default:
		if r.step() {
			r.skipScalar(n)
		}
	}
}

func (r *reading) skipInner(n *node) {
	switch n.kind {
	case kindRecord:
		for i := 0; i < len(n.inner) && r.reason == ""; i++ {
			r.skip(n.inner[i])
		}
	case kindUnion:
		if i, ok := r.index(len(n.inner)); ok {
			r.skip(n.inner[i])
		}
	default: // an array or a map
		for count := r.block(true); count > 0; count = r.block(true) {
			for ; count > 0 && r.reason == ""; count-- {
				if n.kind == kindMap {
					r.text()
				}
				r.skip(n.inner[0])
			}
		}
	}
}

func (r *reading) skipScalar(n *node) {
	switch n.kind {
	case kindNull:
	case kindBoolean:
		r.next(1)
	case kindInt, kindEnum:
		r.integer()
	case kindLong:
		r.long()
	case kindFloat:
		r.next(4)
	case kindDouble:
		r.next(8)
	case kindFixed:
		r.next(n.size)
	default: // bytes or a string
		r.text()
	}
}

func (r *reading) read(p *place) {
	switch p.kind {
	case kindRecord:
		r.readRecord(p)
	case kindUnion:
		if r.enter() {
			if i, ok := r.index(len(p.inner)); ok {
				r.read(p.inner[i])
			}
		}
		r.leave()
	case kindMap:
		r.readMap(p)
	case kindArray:
		r.readArray(p)
	default:
		if p.branch.HasField {
			r.readField(p)
			return
		}
		r.skip(p.node)
	}
}

func (r *reading) readArray(p *place) {
	if p.inner == nil {
		r.skip(p.node)
		r.found.Array(p.branch)
		return
	}
	r.found.List(p.branch.Field)
	if r.enter() {
		for count := r.block(false); count > 0; count = r.block(false) {
			for ; count > 0 && r.reason == ""; count-- {
				r.found.BeginEntry()
				r.read(p.inner[0])
				r.found.EndEntry()
			}
		}
	}
	r.leave()
}

func (r *reading) readRecord(p *place) {
	r.found.RecordAt(p.branch, p.name)
	if r.enter() {
		for i := 0; i < len(p.inner) && r.reason == ""; i++ {
			if inner := p.inner[i]; inner != nil {
				r.read(inner)
			} else {
				r.skip(p.node.inner[i])
			}
		}
	}
	r.leave()
}

// readMap reads a map like a record whose field names are the keys.
func (r *reading) readMap(p *place) {
	if p.branch.HasField {
		r.found.Object(p.branch.Field)
	}
	if r.enter() {
		for count := r.block(false); count > 0; count = r.block(false) {
			for ; count > 0 && r.reason == ""; count-- {
				r.readEntry(p)
			}
		}
	}
	r.leave()
}

// readEntry reads an entry of a map. If a map has a key twice, the last entry counts.
func (r *reading) readEntry(p *place) {
	key := r.text()
	for i := range p.branch.Members {
		if m := &p.branch.Members[i]; m.Name == key {
			clearFields(&m.Branch, r.found)
			r.read(p.inner[i])
			return
		}
	}
	r.skip(p.node.inner[0])
}

// clearFields removes all values that were found for the branch b and its members.
func clearFields(b *event.Branch, found *event.Values) {
	if b.HasField {
		found.Clear(b.Field)
	}
	if b.HasRecord {
		found.Clear(b.Record)
	}
	for i := range b.Members {
		clearFields(&b.Members[i].Branch, found)
	}
}

// readField reads a value that does not contain other values.
func (r *reading) readField(p *place) {
	f := p.branch.Field
	if !r.step() {
		return
	}
	switch p.kind {
	case kindNull:
		r.found.Null(f)
	case kindString:
		r.found.Text(f, r.text())
	case kindEnum:
		if i, ok := r.index(len(p.symbols)); ok {
			r.found.Text(f, p.symbols[i])
		}
	case kindInt:
		r.setInteger(p, r.integer())
	case kindLong:
		r.setInteger(p, r.long())
	case kindBytes:
		text := r.text()
		r.setBytes(p, unsafe.Slice(unsafe.StringData(text), len(text))) //nolint:gosec // G103: nobody writes to it
	case kindFixed:
		r.setBytes(p, r.next(p.size))
	case kindBoolean:
		b := r.next(1)
		r.found.Boolean(f, len(b) > 0 && b[0] != 0)
	case kindFloat, kindDouble:
		r.skipScalar(p.node)
		r.found.Fraction(f)
	default:
		r.skipScalar(p.node)
		r.found.Other(f)
	}
}

func (r *reading) setInteger(p *place, n int64) {
	f := p.branch.Field
	switch p.logical {
	case noLogical:
		r.found.Integer(f, n)
	case logicalMillis:
		r.found.Instant(f, fromMillis(n))
	case logicalMicros:
		r.found.Instant(f, n)
	case logicalNanos:
		r.found.Instant(f, fromNanos(n))
	default:
		r.found.Other(f)
	}
}

func (r *reading) setBytes(p *place, raw []byte) {
	if p.logical == logicalDecimal {
		r.found.Decimal(p.branch.Field, raw, p.scale)
		return
	}
	r.found.Other(p.branch.Field)
}

// fromMillis converts milliseconds to microseconds. If the result would overflow, fromMillis
// returns another time. This time is also outside the valid range, so it is refused.
func fromMillis(n int64) int64 {
	const most = math.MaxInt64 / 1000
	return min(max(n, -most), most) * 1000
}

// fromNanos converts nanoseconds to microseconds. It rounds down.
func fromNanos(n int64) int64 {
	micros := n / 1000
	if n%1000 < 0 {
		micros--
	}
	return micros
}
