package devtest

import (
	"flag"
	"testing"
)

// FewerChecks is for a property of which a check takes long: n of them, unless the flag -rapid.checks
// names another number.
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
