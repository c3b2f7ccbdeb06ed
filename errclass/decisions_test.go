package errclass

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
)

// TestKafkaCodesAreExceptions shows that each entry of kafkaCodes is needed. Without it, the code would
// have another class.
func TestKafkaCodesAreExceptions(t *testing.T) {
	for code, class := range kafkaCodes {
		e := kerr.TypedErrorForCode(code)
		if e == nil {
			t.Errorf("franz-go does not know %d", code)
			continue
		}
		unlisted := &kerr.Error{Message: e.Message, Code: 9999, Retriable: e.Retriable}
		if kafkaCode(unlisted) == class {
			t.Errorf("%s is %s also without an entry", e.Message, class)
		}
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
