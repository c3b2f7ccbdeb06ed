package dlq

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	maxInt32 = math.MaxInt32
	maxInt64 = math.MaxInt64
	minInt64 = math.MinInt64
)

// fields contains those headers of one record that this project has written. err is the first
// error. A header that is missing or cannot be read is an error and gives the zero value. Dead
// letters of older releases lack the headers that were added later, so a reader first asks for such
// a header with has.
type fields struct {
	values map[string][]byte
	err    error
}

// add reads one header. Two headers with the same name are an error, because it is unknown which
// one is right.
func (f *fields) add(h kgo.RecordHeader) {
	if f.values == nil {
		f.values = make(map[string][]byte, 16)
	}
	if _, twice := f.values[h.Key]; twice {
		f.fail(h.Key, "appears twice")
	}
	f.values[h.Key] = h.Value
}

func (f *fields) has(key string) bool {
	_, ok := f.values[key]
	return ok
}

func (f *fields) fail(key, why string) {
	if f.err == nil {
		f.err = fmt.Errorf("header %.100q %s", key, why)
	}
}

func (f *fields) text(key string) string {
	value, ok := f.values[key]
	switch {
	case !ok:
		f.fail(key, "is missing")
	case !utf8.Valid(value):
		f.fail(key, "is not valid UTF-8")
	default:
		return string(value)
	}
	return ""
}

// name reads a text that must not be empty.
func (f *fields) name(key string) string {
	value := f.text(key)
	if value == "" {
		f.fail(key, "is empty")
	}
	return value
}

// number reads a decimal integer between low and high, both included.
func (f *fields) number(key string, low, high int64) int64 {
	n, err := strconv.ParseInt(f.text(key), 10, 64)
	if err != nil || n < low || n > high {
		f.fail(key, "is not an integer in range")
		return 0
	}
	return n
}

func (f *fields) time(key string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, f.text(key))
	if err != nil {
		f.fail(key, "is not an RFC 3339 time")
		return time.Time{}
	}
	return t.UTC()
}

func (f *fields) digest(key string) string {
	sum := f.text(key)
	if raw, err := hex.DecodeString(sum); err != nil || len(raw) != 32 {
		f.fail(key, "is not a SHA-256 digest in hex")
		return ""
	}
	return sum
}
