package flags

import (
	"testing"
	"time"
)

func TestSizesAreReadAsPeopleWriteThem(t *testing.T) {
	for text, want := range map[string]Size{
		"536870912": 512 << 20, "512MiB": 512 << 20, "512Mi": 512 << 20, "0.5GiB": 512 << 20, "1 GiB": 1 << 30, "500MB": 500e6, "7B": 7,
	} {
		var got Size
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "MiB", "-1MiB", "1TiB5", "many", "NaN", "1e30GiB"} {
		var got Size
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was taken for %d", text, got)
		}
	}
}

func TestMoments(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	cases := map[string]string{
		"":                          "0001-01-01T00:00:00Z",
		"24h":                       "2026-02-28T12:00:00Z",
		"7d":                        "2026-02-22T12:00:00Z",
		"90m":                       "2026-03-01T10:30:00Z",
		"2026-01-01T01:00:00+01:00": "2026-01-01T00:00:00Z",
		"yesterday":                 "refused",
		"-1h":                       "refused",
		"-1d":                       "refused",
		"2026-01-01":                "refused",
	}
	for text, want := range cases {
		got, err := Moment("--since", text, now)
		if said := got.UTC().Format(time.RFC3339); err == nil && said != want || (err != nil) != (want == "refused") {
			t.Errorf("%q: %s, %v; want %s", text, said, err, want)
		}
	}
}
