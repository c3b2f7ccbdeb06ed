package devtest

import (
	"flag"
	"testing"
)

// FewerChecks reduces a slow property test to n checks. The flag -rapid.checks overrides n.
// The test must not run in parallel with others, because the number is a flag of the process.
func FewerChecks(t testing.TB, n string) {
	t.Helper()
	const usual = "100"
	checks := flag.Lookup("rapid.checks")
	if checks.Value.String() != usual {
		return
	}
	if err := checks.Value.Set(n); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = checks.Value.Set(usual) })
}
