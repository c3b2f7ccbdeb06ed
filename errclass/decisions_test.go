package errclass

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
)

// TestEveryKafkaCodeIsDecided fails when franz-go has a new error code. The new code must then be
// added to kafkaCodes.
func TestEveryKafkaCodeIsDecided(t *testing.T) {
	known := 0
	for code := int16(-1); code < 1000; code++ {
		e := kerr.TypedErrorForCode(code)
		if e == nil || e.Code != code {
			continue
		}
		known++
		if _, ok := kafkaCodes[code]; !ok {
			t.Errorf("%d %s has no decision", code, e.Message)
		}
	}
	if known != len(kafkaCodes) {
		t.Errorf("franz-go knows %d codes, the table has %d", known, len(kafkaCodes))
	}
}

func TestMaskHidesValues(t *testing.T) {
	for text, want := range map[string]string{
		"lost the partition":                   "lost the partition",
		"can't scan":                           "can't scan",
		"balance is 123.45 EUR":                "balance is # EUR",
		"acc-00000042 at 2026-01-01T00:00:00Z": "# at #:#:#",
		`unable to encode "Müller" into int4`:  `unable to encode "…" into #`,
		`say "a \" b" now`:                     `say "…" now`,
		"open `never closed":                   `open "…"`,
		"bytes []byte{0xab, 0xcd}":             "bytes []byte{#, #}",
		"pa@ss of 'x'":                         `# of "…"`,
		"":                                     "",
		"Grüße 7":                              "Grüße #",
		"-5 and +5":                            "-# and +#",
	} {
		if got := mask(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
