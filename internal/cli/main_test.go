package cli

import (
	"context"
	"io"
	"os"
	"testing"

	"projector/internal/cli/build"
	"projector/internal/devstack/devtest"
	"projector/readmodel"
)

// asProgram is the variable that makes this test binary the program itself, for what
// has to run it as a process of its own.
const asProgram = "PROJECTOR_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(execute(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	devtest.Main(m, func(ctx context.Context, databaseURL string) error {
		_, err := readmodel.Migrate(ctx, databaseURL)
		return err
	})
}

// execute runs one command line, as main does.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return Main(ctx, args, stdout, stderr, build.Info{Version: "dev"})
}
