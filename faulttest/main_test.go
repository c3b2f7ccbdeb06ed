//go:build faults

package faulttest

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"projector/e2e/process"
	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
)

func TestMain(m *testing.M) {
	if err := os.Setenv("PROJECTOR_TEST_KAFKA", "real"); err != nil {
		panic(err)
	}
	devtest.Main(m, process.Migrate(projector))
}

// broker returns the real broker that all tests share. A test may break the broker if it repairs it
// afterwards.
func broker(t testing.TB) *devstack.Kafka {
	t.Helper()
	kafka, own := devtest.Broker(t).(*devstack.Kafka)
	if !own {
		t.Fatal("PROJECTOR_TEST_BROKERS names brokers that are not ours to break: unset it")
	}
	return kafka
}

// projector builds the program with its failpoints, one time for all tests.
var projector = sync.OnceValues(func() (string, error) {
	path, err := nextToTestBinary("projector-with-failpoints")
	if err != nil {
		return "", err
	}
	return path, process.Build(context.Background(), path, "-tags=failpoints")
})

// theOracle builds the program of the oracle, one time for all tests.
var theOracle = sync.OnceValues(func() (string, error) {
	path, err := nextToTestBinary("oracle")
	if err != nil {
		return "", err
	}
	return path, process.BuildCommand(context.Background(), "projector/faulttest/oracle", path)
})

// nextToTestBinary returns a path in the folder of the test binary. go test removes this folder
// with its files.
func nextToTestBinary(name string) (string, error) {
	self, err := os.Executable()
	return filepath.Join(filepath.Dir(self), name), err
}

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

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
