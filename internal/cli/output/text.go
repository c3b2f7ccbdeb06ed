package output

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Counted returns a number and a noun, for example "3 rows". The noun is in the plural unless the
// number is 1.
func Counted[N int | int64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// PartitionsText returns the number of partitions of a topic, and the numbers of these partitions.
func PartitionsText(n int) string {
	if n == 1 {
		return "1 partition, 0"
	}
	return fmt.Sprintf("%s, 0 to %d", Counted(n, "partition"), n-1)
}

// NumbersText formats numbers as a list for a flag.
func NumbersText(numbers []int32) string {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.Itoa(int(n))
	}
	return strings.Join(texts, ",")
}

// Printable replaces characters that are hostile to a terminal, because ids come from producers.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, text)
}

// NotKnown is shown for a value that could not be read from Kafka.
const NotKnown = "?"

// OffsetText formats an offset. A nil offset is shown as not known.
func OffsetText(offset *int64) string {
	if offset == nil {
		return NotKnown
	}
	return OrDash(offset)
}

// PlaceText formats the partition and the offset of a record.
func PlaceText(partition int32, offset int64) string { return fmt.Sprintf("%d/%d", partition, offset) }

// PlaceIn formats the topic, the partition and the offset of a record. The topic may be unknown.
// The result is empty if the partition or the offset is unknown.
func PlaceIn(topic *string, partition *int32, offset *int64) string {
	switch {
	case partition == nil || offset == nil:
		return ""
	case topic == nil:
		return PlaceText(*partition, *offset)
	default:
		return *topic + " " + PlaceText(*partition, *offset)
	}
}

// The text none is shown for an absent value.
const none = "-"

// OrDash formats a value, or the value of a pointer. nil and empty texts become a dash.
func OrDash(value any) string {
	v := reflect.ValueOf(value)
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if !v.IsValid() || v.Kind() == reflect.String && v.Len() == 0 {
		return none
	}
	return fmt.Sprint(v)
}

// OrNull returns nil for an empty text. JSON shows nil as null.
func OrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// NumberOrNull returns the number in a text, with the same digits. It returns nil if the text is
// nil, or is not a decimal number in JSON. For example, a person may have written NaN by SQL.
func NumberOrNull(text *string) *json.Number {
	if text == nil || strings.Trim(*text, "-0123456789.") != "" || !json.Valid([]byte(*text)) {
		return nil
	}
	return new(json.Number(*text))
}

// TimeText formats a time as RFC 3339 in UTC. A year after 9999 has more than four digits. An
// event's time can have such a year because of its time zone.
func TimeText(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// SecondText formats a time like TimeText, without fractions of a second.
func SecondText(t time.Time) string { return TimeText(t.Truncate(time.Second)) }

// Seconds converts a duration to seconds with three decimals. nil stays nil.
func Seconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	return new(math.Round(d.Seconds()*1000) / 1000)
}

// AgeText formats a duration in at most two units.
func AgeText(d time.Duration) string {
	const day = 24 * time.Hour
	d = max(0, d)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < day:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	case d < 100*day:
		return fmt.Sprintf("%dd%dh", int(d/day), int(d.Hours())%24)
	default:
		return fmt.Sprintf("%dd", int(d/day))
	}
}
