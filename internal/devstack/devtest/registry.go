package devtest

import (
	"testing"

	"projector/internal/devstack"
)

// Registry returns a real schema registry for this test alone, to stop and start. It
// takes seconds and 250 MB.
func Registry(t testing.TB) *devstack.Registry {
	t.Helper()
	registry, err := devstack.StartRegistry(t.Context())
	if err != nil {
		t.Fatalf("devtest: %v", err)
	}
	process.closeWith(t, registry.Close)
	return registry
}
