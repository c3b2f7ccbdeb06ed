package cli

import (
	"bytes"
	"strings"
	"testing"
)

// Without its value a filter would let a repair be of everything.
func TestEmptyFiltersAreRefused(t *testing.T) {
	for _, args := range [][]string{
		{"dlq", "discard", "--reason=x", "--class=", "--yes"},
		{"dlq", "replay", "--account=", "--yes"},
		{"dlq", "replay", "--status", "", "--yes"},
		{"dlq", "list", "--since="},
		{"dlq", "export", "--partition="},
		{"dlq", "list", "--dlq-offset="},
	} {
		var out, errOut bytes.Buffer
		if status := execute(t.Context(), args, &out, &errOut); status != exitUsage || !strings.HasPrefix(errOut.String(), "projector: --") {
			t.Errorf("%q: exit status %d, want %d and the flag's name:\n%s", args, status, exitUsage, errOut.String())
		}
	}
}

// With a wrong mechanism named last, the run ends with what is wrong by then: were an
// empty variable a value, it would have ended with that.
func TestEmptyEnvironmentIsNone(t *testing.T) {
	for _, name := range []string{
		"KAFKA_BROKERS", "KAFKA_TOPIC", "PROJECTION", "KAFKA_GROUP", "EVENT_FORMAT", "KAFKA_TLS", "FIRST_VERSION",
		"CURRENCIES", "PARK_LIMIT", "RETRY_INITIAL", "RETRY_MAX", "LOG_LEVEL", "LOG_FORMAT", "LISTEN_ADDR",
	} {
		t.Setenv(name, "")
	}
	var out, errOut bytes.Buffer
	status := execute(t.Context(), []string{"run", "--sasl-mechanism=MD5"}, &out, &errOut)
	if status != exitUsage || !strings.Contains(errOut.String(), "--sasl-mechanism") {
		t.Errorf("exit status %d:\n%s", status, errOut.String())
	}
}
