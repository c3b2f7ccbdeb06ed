package main

import (
	"context"
	"os"
	"testing"

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
