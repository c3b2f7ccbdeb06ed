package operators_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"projector/e2e/process"
	"projector/internal/devstack/devtest"
)

func TestMain(m *testing.M) { devtest.Main(m, process.Migrate(binary)) }

// binary builds the program once. go test removes its folder.
var binary = sync.OnceValues(func() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(self), "projector-under-test")
	return path, process.Build(context.Background(), path)
})

// must returns a function that returns v, or fails the test if err is not nil.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
