package event

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// TimeUnit is what a time means that arrives as a number: the zero value accepts
// RFC 3339 only, because a unit is never guessed.
type TimeUnit uint8

// The units of a number that counts from the Unix epoch.
const (
	RFC3339 TimeUnit = iota
	Milliseconds
	Microseconds
	Nanoseconds
)

// timeUnits are the units by the name an operator chooses them by.
var timeUnits = [...]string{RFC3339: "rfc3339", Milliseconds: "ms", Microseconds: "us", Nanoseconds: "ns"}

// ParseTimeUnit reads "rfc3339", "ms", "us" or "ns".
func ParseTimeUnit(name string) (TimeUnit, error) {
	for unit, known := range timeUnits {
		if name == known {
			return TimeUnit(unit), nil
		}
	}
	return RFC3339, fmt.Errorf("time unit %q is unknown (use rfc3339, ms, us or ns)", name)
}

// String returns what ParseTimeUnit reads.
func (u TimeUnit) String() string { return timeUnits[u] }

const (
	reasonNotTime   = "is not an RFC 3339 time with offset"
	reasonEpoch     = "is a number without a known unit; name its unit with --debezium-time-unit (ms, us or ns), or use a column with time zone"
	reasonTimeRange = "is outside the years 0 to 9999"
)

// The times that RFC 3339 can write, in microseconds: no other way of writing one
// shall reach further.
var (
	firstMicros = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	lastMicros  = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro() - 1
)

// parse reads a text that is no RFC 3339 time as microseconds since the Unix epoch;
// finer digits are cut, towards the past. The reason says why it cannot, "" for none.
func (u TimeUnit) parse(text []byte) (micros int64, reason string) {
	if !isInteger(text, numberOrText) {
		return 0, reasonNotTime
	}
	if u == RFC3339 {
		return 0, reasonEpoch
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0, reasonTimeRange
	}
	switch u {
	case Milliseconds:
		if n > math.MaxInt64/1000 || n < math.MinInt64/1000 {
			return 0, reasonTimeRange
		}
		n *= 1000
	case Nanoseconds:
		past := n%1000 < 0
		n /= 1000
		if past {
			n--
		}
	default:
	}
	if reason := timeReason(n); reason != "" {
		return 0, reason
	}
	return n, ""
}

// timeReason says whether a time in microseconds is none that RFC 3339 can write, ""
// when it can.
func timeReason(micros int64) string {
	if micros < firstMicros || micros > lastMicros {
		return reasonTimeRange
	}
	return ""
}
