package telemetry

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// unknown stands on the page for what is not known yet.
const unknown = "–"

// formatCount groups digits by three with a narrow space that does not break: offsets are long.
func formatCount(v any) string {
	var n int64
	switch v := v.(type) {
	case int64:
		n = v
	case *int64:
		if v == nil {
			return unknown
		}
		n = *v
	default:
		return unknown
	}
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "−", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "\u202f" + digits[i:]
	}
	return sign + digits
}

// formatSeconds says a duration in the two largest units that matter.
func formatSeconds(v any) string {
	var s float64
	switch v := v.(type) {
	case float64:
		s = v
	case *float64:
		if v == nil {
			return unknown
		}
		s = *v
	default:
		return unknown
	}
	if math.IsNaN(s) || s < 0 {
		return unknown
	}
	switch n := int64(s); {
	case s < 10:
		return strconv.FormatFloat(s, 'f', 1, 64) + " s"
	case n < 60:
		return fmt.Sprintf("%d s", n)
	case n < 3600:
		return fmt.Sprintf("%d min %d s", n/60, n%60)
	case n < 86400:
		return fmt.Sprintf("%d h %d min", n/3600, n%3600/60)
	default:
		return fmt.Sprintf("%d d %d h", n/86400, n%86400/3600)
	}
}

// formatAge is the time since t, as people say it.
func formatAge(t time.Time) string {
	if t.IsZero() {
		return unknown
	}
	return formatSeconds(max(time.Since(t), 0).Seconds())
}

// formatClock is the time of day, with the day when that is not today.
func formatClock(t time.Time) string {
	t, today := t.UTC(), time.Now().UTC()
	if t.Format(time.DateOnly) == today.Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

func formatTime(t time.Time) string {
	return t.UTC().Format(time.RFC3339)
}

// formatRate is records a second, as exact as anyone reads it.
func formatRate(v float64) string {
	if v > 0 && v < 10 {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return formatCount(int64(math.Round(v)))
}

// number is in JSON a number of at most two decimals, or null when it is NaN.
type number float64

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) {
	f := float64(n)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, math.Round(f*100)/100, 'f', -1, 64), nil
}
