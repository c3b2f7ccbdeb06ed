package avro

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// next returns the next n bytes, or none if there are fewer.
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

// integer reads a number of 32 bits, in five bytes at most.
func (r *reading) integer() int64 {
	before := len(r.rest)
	n := r.long()
	if n < math.MinInt32 || n > math.MaxInt32 || before-len(r.rest) > 5 && r.reason == "" {
		r.fail(reasonBroken)
		return 0
	}
	return n
}

// index reads the index of a branch or a symbol. of is how many there are.
func (r *reading) index(of int) (int, bool) {
	n := r.integer()
	if n < 0 || n >= int64(of) {
		r.fail(reasonBroken)
	}
	return int(n), r.reason == ""
}

// text reads a length and so many bytes. The text is a part of the value.
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

// block returns how many values the next block of an array or a map has. It is 0 at the end. If
// skip, blocks that have their size in bytes are skipped.
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
