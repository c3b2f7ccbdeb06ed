package demo_test

import (
	"context"
	"os"
	"testing"

	"projector/internal/cli/clitest"
	"projector/readmodel/readmodeltest"
)

// actAsProjector is the variable that makes this test binary run as the program.
const actAsProjector = "TEST_ACTS_AS_PROJECTOR"

func TestMain(m *testing.M) {
	if os.Getenv(actAsProjector) != "" {
		os.Exit(clitest.Execute(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	readmodeltest.Main(m)
}
