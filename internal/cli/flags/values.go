package flags

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"projector/internal/cli/exit"
)

// Items cleans up a list from a flag: it removes spaces around commas and empty items.
func Items(list []string) []string {
	var named []string
	for _, item := range list {
		if item = strings.TrimSpace(item); item != "" {
			named = append(named, item)
		}
	}
	return named
}

// Texts converts names to strings.
func Texts[T ~string](names []T) []string {
	plain := make([]string, len(names))
	for i, name := range names {
		plain[i] = string(name)
	}
	return plain
}

// Moment parses a time, or an age such as 24h or 7d. It returns the zero time for an empty text.
func Moment(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	age, err := time.ParseDuration(text)
	if days, isDays := strings.CutSuffix(text, "d"); err != nil && isDays {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		age = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || age < 0 {
		return time.Time{}, exit.Usagef("%s: %q is neither a time such as 2026-01-31T12:00:00Z nor an age such as 24h or 7d", flag, text)
	}
	return now.Add(-age), nil
}

// FixMoment parses a time or an age. It replaces an age in the argument text with the time that
// this age means now.
func FixMoment(flag string, text *string, now time.Time) (time.Time, error) {
	t, err := Moment(flag, *text, now)
	if err == nil && *text != "" {
		*text = t.UTC().Format(time.RFC3339Nano)
	}
	return t, err
}

// Window parses --since and --until. It replaces ages with the times that they mean now, and refuses
// a window that ends before it begins.
func Window(since, until *string, now time.Time) (from, to time.Time, err error) {
	typed := fmt.Sprintf("--since=%s is later than --until=%s", *since, *until)
	if from, err = FixMoment("--since", since, now); err != nil {
		return from, to, err
	}
	if to, err = FixMoment("--until", until, now); err == nil && *until != "" && from.After(to) {
		err = exit.Usagef("%s: exchange them; an age counts back from now, so 24h is before 1h", typed)
	}
	return from, to, err
}

// CheckRetention refuses an invalid retention of the inbox.
func CheckRetention(flag string, d time.Duration) error {
	if d <= 0 {
		return exit.Usagef("%s (INBOX_RETENTION): must be more than 0", flag)
	}
	return nil
}

// Size is a number of bytes, written as 536870912, 512MiB, 512Mi or 0.5GiB.
type Size int64

// byteUnits are tried in this order. A unit must come before a unit that is its suffix, for example
// KB before B.
var byteUnits = []struct {
	suffix string
	bytes  float64
}{
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"Ki", 1 << 10},
	{"Mi", 1 << 20},
	{"Gi", 1 << 30},
	{"KB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"B", 1},
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *Size) UnmarshalText(text []byte) error {
	number, unit := string(text), 1.0
	for _, u := range byteUnits {
		if cut, has := strings.CutSuffix(number, u.suffix); has {
			number, unit = strings.TrimSpace(cut), u.bytes
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !(n >= 0 && n*unit < math.MaxInt64) {
		return fmt.Errorf("%q is not a size; write it as 512MiB or as a number of bytes", text)
	}
	*b = Size(n * unit)
	return nil
}

// MarshalText implements encoding.TextMarshaler. The text is the number of bytes without a unit.
func (b Size) MarshalText() ([]byte, error) { return strconv.AppendInt(nil, int64(b), 10), nil }

// String returns the size in MiB.
func (b Size) String() string {
	return strconv.FormatFloat(float64(b)/(1<<20), 'f', -1, 64) + "MiB"
}
