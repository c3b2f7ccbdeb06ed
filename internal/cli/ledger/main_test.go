package ledger_test

import (
	"testing"

	"projector/internal/cli/clitest"
)

func TestMain(m *testing.M) { clitest.RunTests(m) }
