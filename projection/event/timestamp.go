package event

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

const microsPerSecond = 1_000_000

// parseTimestamp reads an RFC 3339 time with an offset. It returns microseconds since the Unix
// epoch, UTC. Digits after the microsecond are cut off. This rounds down, also before 1970, because
// a fraction counts forward from its second.
//
// It is stricter than time.Parse, which accepts a comma before the fraction and single-digit hours.
// RFC 3339 leaves these choices:
//   - "t" and "z" are accepted (section 5.6), a space instead of "T" is not;
//   - "-00:00" is UTC (section 4.3);
//   - a leap second, 23:59:60 UTC at the end of a month, becomes the last microsecond of its UTC
//     day, because Go and PostgreSQL have no leap seconds. Any other :60 is refused.
func parseTimestamp(s []byte) (micros int64, ok bool) {
	clock, rest, ok := parseClock(s)
	if !ok {
		return 0, false
	}
	fraction, rest, ok := parseFraction(rest)
	if !ok {
		return 0, false
	}
	offset, ok := parseOffset(rest)
	if !ok {
		return 0, false
	}
	return clock.micros(fraction, offset)
}

// IsRFC3339 reports whether parseTimestamp accepts the text.
func IsRFC3339(text string) bool {
	_, ok := parseTimestamp([]byte(text))
	return ok
}

// wallClock is a date and a time of day without an offset.
type wallClock struct {
	year, month, day     int
	hour, minute, second int
}

// parseClock reads "2026-01-01T00:00:00" and returns the text after it. It does not check whether
// the month has the day, because the method micros checks this.
func parseClock(s []byte) (c wallClock, rest []byte, ok bool) {
	const layoutLen = len("2026-01-01T00:00:00")
	if len(s) < layoutLen || s[4] != '-' || s[7] != '-' || (s[10] != 'T' && s[10] != 't') || s[13] != ':' || s[16] != ':' {
		return wallClock{}, nil, false
	}
	century, okCentury := twoDigits(s[0:], 99)
	year, okYear := twoDigits(s[2:], 99)
	month, okMonth := twoDigits(s[5:], 12)
	day, okDay := twoDigits(s[8:], 31)
	hour, okHour := twoDigits(s[11:], 23)
	minute, okMinute := twoDigits(s[14:], 59)
	second, okSecond := twoDigits(s[17:], 60)
	c = wallClock{century*100 + year, month, day, hour, minute, second}
	ok = okCentury && okYear && okMonth && okDay && okHour && okMinute && okSecond && month > 0 && day > 0
	return c, s[layoutLen:], ok
}

// twoDigits reads the first two bytes of s as a number that is at most limit.
func twoDigits(s []byte, limit int) (n int, ok bool) {
	tens, ones := s[0]-'0', s[1]-'0'
	n = int(tens)*10 + int(ones)
	return n, tens <= 9 && ones <= 9 && n <= limit
}

// parseFraction reads an optional point with one or more digits as microseconds. It cuts off digits
// after the microsecond and returns the text after the fraction.
func parseFraction(s []byte) (micros int64, rest []byte, ok bool) {
	if len(s) == 0 || s[0] != '.' {
		return 0, s, true
	}
	unit := int64(microsPerSecond)
	n := 1
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		unit /= 10 // 0 after the sixth digit
		micros += int64(s[n]-'0') * unit
		n++
	}
	return micros, s[n:], n > 1
}

// parseOffset reads the rest of the text, which is "Z" or an offset such as "+01:00". It returns
// seconds east of UTC.
func parseOffset(s []byte) (seconds int64, ok bool) {
	if len(s) == 1 && (s[0] == 'Z' || s[0] == 'z') {
		return 0, true
	}
	if len(s) != len("+01:00") || (s[0] != '+' && s[0] != '-') || s[3] != ':' {
		return 0, false
	}
	hours, okHours := twoDigits(s[1:], 23)
	minutes, okMinutes := twoDigits(s[4:], 59)
	seconds = int64(hours*60+minutes) * 60
	if s[0] == '-' {
		seconds = -seconds
	}
	return seconds, okHours && okMinutes
}

// micros returns the microseconds since the epoch. It returns false if the month does not have the
// day, or if second 60 cannot be a leap second.
func (c wallClock) micros(fraction, offset int64) (int64, bool) {
	leap := c.second == 60
	if leap {
		c.second, fraction = 59, microsPerSecond-1
	}
	t := time.Date(c.year, time.Month(c.month), c.day, c.hour, c.minute, c.second, 0, time.UTC)
	if t.Day() != c.day { // time.Date normalizes 30 February to 2 March
		return 0, false
	}
	seconds := t.Unix() - offset
	if leap && !startsMonth(seconds+1) {
		return 0, false
	}
	return seconds*microsPerSecond + fraction, true
}

// startsMonth reports whether a Unix time is 00:00:00 UTC on the first of a month.
func startsMonth(seconds int64) bool {
	t := time.Unix(seconds, 0).UTC()
	return t.Day() == 1 && t.Hour() == 0 && t.Minute() == 0 && t.Second() == 0
}

// TimeUnit says how a time is written. The zero value accepts only RFC 3339, because a unit is
// never guessed.
type TimeUnit uint8

// All units except RFC3339 and Date count from the Unix epoch.
const (
	RFC3339 TimeUnit = iota
	Milliseconds
	Microseconds
	Nanoseconds
	Seconds
	SecondsWithFraction
	Date // a text such as 2026-01-01, which means midnight UTC
)

// timeUnits contains the names of the units in flags and mapping files.
var timeUnits = [...]string{
	RFC3339: "rfc3339", Milliseconds: "ms", Microseconds: "us", Nanoseconds: "ns", Seconds: "s",
	SecondsWithFraction: "s.fraction", Date: "date",
}

// Counts reports whether a time in this unit is a number.
func (u TimeUnit) Counts() bool { return u != RFC3339 && u != Date }

// Example returns the beginning of 2026, UTC, in this unit.
func (u TimeUnit) Example() string {
	begins := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	switch u {
	case Seconds:
		return strconv.FormatInt(begins.Unix(), 10)
	case SecondsWithFraction:
		return strconv.FormatInt(begins.Unix(), 10) + ".0"
	case Milliseconds:
		return strconv.FormatInt(begins.UnixMilli(), 10)
	case Microseconds:
		return strconv.FormatInt(begins.UnixMicro(), 10)
	case Nanoseconds:
		return strconv.FormatInt(begins.UnixNano(), 10)
	case RFC3339:
		return begins.Format(time.RFC3339)
	case Date:
		return begins.Format(time.DateOnly)
	}
	return ""
}

// TimeUnitNamed returns the unit with the given name.
func TimeUnitNamed(name string) (unit TimeUnit, known bool) {
	i := slices.Index(timeUnits[:], name)
	return TimeUnit(max(i, 0)), i >= 0 //nolint:gosec // G115: an index of a short list
}

// ParseTimeUnit reads "rfc3339", "ms", "us" or "ns", which are the units that Debezium may write.
func ParseTimeUnit(name string) (TimeUnit, error) {
	if unit, known := TimeUnitNamed(name); known && unit <= Nanoseconds {
		return unit, nil
	}
	return RFC3339, fmt.Errorf("time unit %q is unknown (use rfc3339, ms, us or ns)", name)
}

// String returns the name of the unit in flags and mapping files.
func (u TimeUnit) String() string { return timeUnits[u] }

const (
	reasonNotTime   = "is not an RFC 3339 time with offset"
	reasonEpoch     = "is a number without a known unit; name its unit with --debezium-time-unit (ms, us or ns), or use a column with time zone"
	reasonTimeRange = "is outside the years 0 to 9999"
)

// These are the first and the last time of RFC 3339, in microseconds. They are the limits of times
// that are numbers.
var (
	firstMicros = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	lastMicros  = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro() - 1
)

// parse reads a number in this unit as microseconds since the Unix epoch. Fractions of a
// microsecond are rounded down. The reason says why the text is not a valid time, or is "".
func (u TimeUnit) parse(text []byte) (micros int64, reason string) {
	switch {
	case !isInteger(text, numberOrText):
		return 0, reasonNotTime
	case u == RFC3339:
		return 0, reasonEpoch
	}
	return u.count(text)
}

// parseDeclared reads a time in the unit that a mapping declares, and accepts no other form.
func (u TimeUnit) parseDeclared(text []byte) (micros int64, reason string) {
	if u == Date {
		micros, ok := parseDate(text)
		if !ok {
			return 0, "is not a date such as 2026-01-01, as the mapping declares"
		}
		return micros, ""
	}
	if u == SecondsWithFraction {
		return parseSeconds(text)
	}
	if !isInteger(text, numberOrText) || string(text) == "-0" {
		return 0, u.reasonNotCount()
	}
	return u.count(text)
}

// parseSeconds reads seconds since 1970 with an optional fraction. Digits after the microsecond are
// cut off.
func parseSeconds(text []byte) (micros int64, reason string) {
	whole, fraction := text, []byte(nil)
	if point := bytes.IndexByte(text, '.'); point >= 0 {
		whole, fraction = text[:point], text[point:]
	}
	more, rest, ok := parseFraction(fraction)
	if !ok || len(rest) > 0 || !isPlainDigits(whole) {
		return 0, SecondsWithFraction.reasonNotCount()
	}
	micros, reason = Seconds.count(whole)
	return micros + more, reason
}

// reasonNotCount returns why a value is no time in this unit.
func (u TimeUnit) reasonNotCount() string {
	if u == SecondsWithFraction {
		return "is not a number of seconds since 1970, as the mapping declares"
	}
	return "is not an integer that counts from 1970, as the mapping declares"
}

// parseDate reads a date as midnight UTC.
func parseDate(text []byte) (micros int64, ok bool) {
	const midnight = "T00:00:00Z"
	if len(text) != len("2026-01-01") {
		return 0, false
	}
	var whole [len("2026-01-01") + len(midnight)]byte
	copy(whole[copy(whole[:], text):], midnight)
	return parseTimestamp(whole[:])
}

// count reads an integer that counts from the Unix epoch.
func (u TimeUnit) count(text []byte) (micros int64, reason string) {
	n, fits := parseInteger(text)
	if !fits {
		return 0, reasonTimeRange
	}
	switch u {
	case Seconds:
		if n > math.MaxInt64/microsPerSecond || n < math.MinInt64/microsPerSecond {
			return 0, reasonTimeRange
		}
		n *= microsPerSecond
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

// timeReason returns the reason why a time in microseconds is outside the range of RFC 3339, or "".
func timeReason(micros int64) string {
	if micros < firstMicros || micros > lastMicros {
		return reasonTimeRange
	}
	return ""
}
