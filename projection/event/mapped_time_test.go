package event_test

import (
	"testing"
	"time"

	"projector/projection/event"
)

// The function timed returns a format that reads times in the given unit from the given place.
func timed(t testing.TB, unit event.TimeUnit, place event.FieldPath) event.Format {
	t.Helper()
	opts := event.Options{FirstVersion: 0, Mapping: event.Mapping{Time: unit, Fields: map[event.Field]event.FieldPath{event.FieldOccurredAt: place}}}
	f, err := event.New(event.FormatJSON, opts)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// withTime returns an event with the given JSON text as its time.
func withTime(text string) string {
	return `{"meta":{"ts":` + text + `},"eventId":"e","eventType":"FundsCredited","accountId":"a","version":0,"data":{"amount":"1","currency":"EUR"}}`
}

func TestMappedTimes(t *testing.T) {
	const wrong = "wrong"
	for _, tt := range []struct {
		unit event.TimeUnit
		text string
		want string // RFC 3339, or the constant wrong
	}{
		{event.Seconds, "1767225600", "2026-01-01T00:00:00Z"},
		{event.Seconds, "1767225600.5", wrong},
		{event.SecondsWithFraction, "1767225600.123456789", "2026-01-01T00:00:00.123456Z"},
		{event.SecondsWithFraction, "1767225600.000000000", "2026-01-01T00:00:00Z"},
		{event.SecondsWithFraction, "0.5", "1970-01-01T00:00:00.5Z"},
		{event.SecondsWithFraction, "253402300799.9999999", "9999-12-31T23:59:59.999999Z"},
		{event.SecondsWithFraction, "253402300800.0", wrong},
		{event.SecondsWithFraction, "1767225600", "2026-01-01T00:00:00Z"},
		{event.SecondsWithFraction, "-1.5", wrong},
		{event.SecondsWithFraction, "-1", wrong},
		{event.SecondsWithFraction, "1767225600.5e0", wrong},
		{event.SecondsWithFraction, "17672256e2", wrong},
		{event.SecondsWithFraction, `"1767225600.5"`, wrong},
		{event.Seconds, "-1", "1969-12-31T23:59:59Z"},
		{event.Seconds, "0", "1970-01-01T00:00:00Z"},
		{event.Seconds, "9223372036854775807", wrong}, // the year 292277026596
		{event.Seconds, "9223372036854", wrong},
		{event.Seconds, "253402300799", "9999-12-31T23:59:59Z"},
		{event.Seconds, "253402300800", wrong},
		{event.Milliseconds, "1767225600123", "2026-01-01T00:00:00.123Z"},
		{event.Milliseconds, "9223372036854775807", wrong},
		{event.Microseconds, "1767225600123456", "2026-01-01T00:00:00.123456Z"},
		{event.Microseconds, "9223372036854775808", wrong}, // 2^63
		{event.Nanoseconds, "1767225600123456789", "2026-01-01T00:00:00.123456Z"},
		{event.Nanoseconds, "-1", "1969-12-31T23:59:59.999999Z"},
		{event.Milliseconds, "1767225600123.0", wrong},
		{event.Milliseconds, "1.7e12", wrong},
		{event.Milliseconds, "1E12", wrong},
		{event.Milliseconds, "-0", wrong},
		{event.Milliseconds, `"1767225600123"`, wrong},
		{event.Milliseconds, `"2026-01-01T00:00:00Z"`, wrong},
		{event.Milliseconds, "null", wrong},
		{event.Milliseconds, "true", wrong},
		{event.Milliseconds, "[1]", wrong},
		{event.Milliseconds, `{"t":1}`, wrong},
		{event.Date, `"2026-02-28"`, "2026-02-28T00:00:00Z"},
		{event.Date, `"0000-01-01"`, "0000-01-01T00:00:00Z"},
		{event.Date, `"2026-02-29"`, wrong},
		{event.Date, `"2026-2-28"`, wrong},
		{event.Date, `"2026-02-28Z"`, wrong},
		{event.Date, `"2026-02-28T00:00:00Z"`, wrong},
		{event.Date, `""`, wrong},
		{event.Date, "20260228", wrong},
		{event.RFC3339, `"2026-01-01T00:00:00Z"`, "2026-01-01T00:00:00Z"},
		{event.RFC3339, "1767225600123", wrong},
	} {
		d := decode(timed(t, tt.unit, path("meta", "ts")), withTime(tt.text))
		if tt.want == wrong {
			if d.Fault == nil || d.Fault.Class != event.MalformedPayload || d.Fault.Field != "meta.ts" {
				t.Errorf("%s %s: %+v, fault %v", tt.unit, tt.text, d.Event, d.Fault)
			}
			continue
		}
		if got := time.UnixMicro(d.Event.OccurredAt).UTC().Format(time.RFC3339Nano); d.Fault != nil || got != tt.want {
			t.Errorf("%s %s: %s, fault %v, want %s", tt.unit, tt.text, got, d.Fault, tt.want)
		}
	}
}

// A time in a header must consist of digits.
func TestMappedTimeInAHeader(t *testing.T) {
	f := timed(t, event.Milliseconds, event.FieldPath{Header: "ts"})
	for text, good := range map[string]bool{"1767225600123": true, "1767225600123.5": false, "2026-01-01T00:00:00Z": false, "": false, "-0": false} {
		d := decode(f, withTime("1"), event.Header{Key: "ts", Value: []byte(text)})
		if good != (d.Fault == nil) || good && d.Event.OccurredAt != micros {
			t.Errorf("%q: %+v, fault %v", text, d.Event, d.Fault)
		}
	}
}

// Seconds in the JSON of a header may have a fraction.
func TestMappedSecondsInAHeader(t *testing.T) {
	f := timed(t, event.SecondsWithFraction, event.FieldPath{Header: "meta", Path: []string{"ts"}})
	for text, want := range map[string]string{`{"ts":1767225600.5}`: "2026-01-01T00:00:00.5Z", `{"ts":"1767225600.5"}`: "", `{"ts":1.5e9}`: ""} {
		d := decode(f, withTime("1"), event.Header{Key: "meta", Value: []byte(text)})
		if got := time.UnixMicro(d.Event.OccurredAt).UTC().Format(time.RFC3339Nano); (d.Fault == nil) != (want != "") || want != "" && got != want {
			t.Errorf("%s: %s, fault %v", text, got, d.Fault)
		}
	}
}

func TestMappedTimeUnitAndFlag(t *testing.T) {
	opts := event.Options{Mapping: event.Mapping{Time: event.Seconds}, Debezium: event.DebeziumOptions{TimeUnit: event.Milliseconds}}
	if _, err := event.New(event.FormatDebezium, opts); err == nil {
		t.Error("two units are accepted")
	}
}

func FuzzMappedTime(f *testing.F) {
	for _, seed := range []string{"1767225600123", "-0", "1e3", "9223372036854775808", `"2026-01-01"`, "null"} {
		f.Add(seed, uint8(event.Milliseconds))
		f.Add(seed, uint8(event.Date))
	}
	f.Fuzz(func(t *testing.T, text string, unit uint8) {
		d := decode(timed(t, event.TimeUnit(unit)%(event.Date+1), path("meta", "ts")), withTime(text))
		if year := time.UnixMicro(d.Event.OccurredAt).UTC().Year(); year < 0 || year > 9999 {
			t.Fatalf("%s: year %d", text, year)
		}
	})
}
