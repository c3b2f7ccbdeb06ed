package e2e_test

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

// binary builds the program once. It builds with the race detector if the tests have it. The binary
// is in the folder of the test binary, which go test removes.
var binary = sync.OnceValues(func() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(self), "projector-under-test")
	var race []string
	if raceEnabled {
		race = append(race, "-race")
	}
	return path, process.Build(context.Background(), path, race...)
})
