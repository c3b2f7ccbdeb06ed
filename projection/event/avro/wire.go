package avro

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// next returns the next n bytes. If fewer bytes are left, it sets the reason and returns nil.
func (r *reading) next(n int) []byte {
	if n < 0 || n > len(r.rest) {
		r.fail(reasonShort)
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reading) long() int64 {
	u, n := binary.Uvarint(r.rest)
	switch {
	case n == 0:
		r.fail(reasonShort)
		return 0
	case n < 0:
		r.fail(reasonBroken)
		return 0
	}
	r.rest = r.rest[n:]
	return int64(u>>1) ^ -int64(u&1)
}

// integer reads a 32-bit number, which must not be longer than five bytes.
func (r *reading) integer() int64 {
	before := len(r.rest)
	n := r.long()
	if n < math.MinInt32 || n > math.MaxInt32 || before-len(r.rest) > 5 && r.reason == "" {
		r.fail(reasonBroken)
		return 0
	}
	return n
}

// index reads the index of a branch or a symbol. The parameter count is the number of branches or
// symbols.
func (r *reading) index(count int) (int, bool) {
	n := r.integer()
	if n < 0 || n >= int64(count) {
		r.fail(reasonBroken)
	}
	return int(n), r.reason == ""
}

// text reads a length and then a text of this length. The text shares memory with the value.
func (r *reading) text() string {
	n := r.long()
	switch {
	case n < 0:
		r.fail(reasonBroken)
	case n > int64(len(r.rest)):
		r.fail(reasonShort)
	default:
		b := r.next(int(n))
		return unsafe.String(unsafe.SliceData(b), len(b)) //nolint:gosec // G103: nobody writes to it
	}
	return ""
}

// block returns the number of values in the next block of an array or a map. The number is 0 at the
// end. If skip is true, block skips all blocks that contain their size in bytes.
func (r *reading) block(skip bool) (count int64) {
	for {
		if count = r.long(); count >= 0 {
			return count
		}
		size := r.long()
		if size < 0 || count == math.MinInt64 {
			r.fail(reasonBroken)
		} else if size > int64(len(r.rest)) {
			r.fail(reasonShort)
		}
		switch {
		case r.reason != "":
			return 0
		case !skip || size == 0:
			return -count
		}
		r.next(int(size))
	}
}
