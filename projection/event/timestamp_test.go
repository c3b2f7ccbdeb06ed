package event

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseTimestamp(t *testing.T) {
	tests := []struct {
		text string
		want string // RFC 3339 in UTC, with microseconds; "" means refused
	}{
		{"2026-01-01T00:00:00.123Z", "2026-01-01T00:00:00.123000Z"},
		{"2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000000Z"},
		{"2026-01-01T02:30:00+02:30", "2026-01-01T00:00:00.000000Z"},
		{"2025-12-31T19:00:00-05:00", "2026-01-01T00:00:00.000000Z"},
		{"2026-01-01T00:00:00-00:00", "2026-01-01T00:00:00.000000Z"},
		{"2026-01-01T00:00:00+23:59", "2025-12-31T00:01:00.000000Z"},
		{"2026-01-01t00:00:00z", "2026-01-01T00:00:00.000000Z"},

		// Digits after the microsecond are cut off, also before 1970.
		{"2026-01-01T00:00:00.1234569Z", "2026-01-01T00:00:00.123456Z"},
		{"2026-01-01T00:00:00.999999999Z", "2026-01-01T00:00:00.999999Z"},
		{"1969-12-31T23:59:59.9999999Z", "1969-12-31T23:59:59.999999Z"},
		{"1900-01-01T00:00:00.0000009Z", "1900-01-01T00:00:00.000000Z"},
		{"2026-01-01T00:00:00.12345678901234567890123456789Z", "2026-01-01T00:00:00.123456Z"},

		// These are the limits of months and leap years.
		{"2024-02-29T12:00:00Z", "2024-02-29T12:00:00.000000Z"},
		{"2026-02-29T12:00:00Z", ""},
		{"1900-02-29T12:00:00Z", ""},
		{"2000-02-29T12:00:00Z", "2000-02-29T12:00:00.000000Z"},
		{"2026-04-31T12:00:00Z", ""},
		{"2026-00-01T00:00:00Z", ""},
		{"2026-13-01T00:00:00Z", ""},
		{"2026-01-00T00:00:00Z", ""},
		{"2026-01-32T00:00:00Z", ""},
		{"2026-01-01T23:59:59Z", "2026-01-01T23:59:59.000000Z"},
		{"2026-01-01T24:00:00Z", ""},
		{"2026-01-01T00:60:00Z", ""},
		{"2026-01-01T00:00:61Z", ""},
		{"0000-01-01T00:00:00Z", "0000-01-01T00:00:00.000000Z"},
		{"9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"},

		// A leap second becomes the last microsecond of its day. At any other time, second 60 is
		// refused.
		{"2016-12-31T23:59:60Z", "2016-12-31T23:59:59.999999Z"},
		{"2016-12-31T23:59:60.5Z", "2016-12-31T23:59:59.999999Z"},
		{"2017-01-01T00:59:60+01:00", "2016-12-31T23:59:59.999999Z"},
		{"1990-12-31T15:59:60-08:00", "1990-12-31T23:59:59.999999Z"},
		{"2016-12-30T23:59:60Z", ""},
		{"2016-12-31T23:58:60Z", ""},
		{"2016-12-31T23:59:60+01:00", ""},

		// These are texts that time.Parse accepts, or that a person might write.
		{"2026-01-01T00:00:00,123Z", ""},
		{"2026-01-01T0:00:00Z", ""},
		{"2026-01-01 00:00:00Z", ""},
		{"2026-01-01T00:00:00", ""},
		{"2026-01-01T00:00:00.Z", ""},
		{"2026-01-01T00:00:00.", ""},
		{"2026-01-01T00:00:00+0100", ""},
		{"2026-01-01T00:00:00+01", ""},
		{"2026-01-01T00:00:00+1:00", ""},
		{"2026-01-01T00:00:00+24:00", ""},
		{"2026-01-01T00:00:00+01:60", ""},
		{"2026-01-01T00:00:00 +01:00", ""},
		{"2026-01-01T00:00:00UTC", ""},
		{"2026-01-01T00:00:00ZZ", ""},
		{" 2026-01-01T00:00:00Z", ""},
		{"2026-01-01T00:00:00Z ", ""},
		{"2026-01-01T00:00Z", ""},
		{"2026-1-01T00:00:00Z", ""},
		{"20260101T000000Z", ""},
		{"12026-01-01T00:00:00Z", ""},
		{"-026-01-01T00:00:00Z", ""},
		{"2026-01-01", ""},
		{"1767225600", ""},
		{"", ""},
		{"٢٠٢٦-01-01T00:00:00Z", ""},
	}
	for _, tt := range tests {
		micros, ok := parseTimestamp([]byte(tt.text))
		got := ""
		if ok {
			got = time.UnixMicro(micros).UTC().Format("2006-01-02T15:04:05.000000Z07:00")
		}
		if got != tt.want {
			t.Errorf("%q is read as %q, want %q", tt.text, got, tt.want)
		}
	}
}

// The offset may move a time out of the years that have four digits.
func TestParseTimestampBeyondFourDigitYears(t *testing.T) {
	for text, want := range map[string]time.Time{
		"9999-12-31T23:59:59-23:59": time.Date(10000, 1, 1, 23, 58, 59, 0, time.UTC),
		"0000-01-01T00:00:00+23:59": time.Date(-1, 12, 31, 0, 1, 0, 0, time.UTC),
	} {
		if micros, ok := parseTimestamp([]byte(text)); !ok || micros != want.UnixMicro() {
			t.Errorf("%s is read as %d, %v; want %d", text, micros, ok, want.UnixMicro())
		}
	}
}

// parseTimestamp must accept the same of these texts as time.Parse, with the same result.
func TestParseTimestampAgainstTimeParse(t *testing.T) {
	texts := rapid.StringMatching(
		`[0-9]{4}-(0[0-9]|1[0-3])-([0-2][0-9]|3[0-2])T([01][0-9]|2[0-4])(:[0-5][0-9]){2}(\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])`)
	rapid.Check(t, func(t *rapid.T) {
		text := texts.Draw(t, "text")
		want, err := time.Parse(time.RFC3339, text)
		micros, ok := parseTimestamp([]byte(text))
		if ok != (err == nil) {
			t.Fatalf("%s: accepted %v, by time.Parse: %v", text, ok, err)
		}
		// The expected time is rounded down with Truncate, because UnixMicro alone might round a
		// time before 1970 in the other direction.
		if ok && want.Truncate(time.Microsecond).UnixMicro() != micros {
			t.Fatalf("%s is %d, by time.Parse %v", text, micros, want)
		}
	})
}
