package change_test

import (
	"testing"

	"projector/internal/cli/clitest"
)

// TestARequestByHandHidesNoOther inserts requests that only SQL can make: lists with nulls, and lists
// of lists. An operator may insert such rows, and nobody may delete them. Other requests must still be
// listed, and each of these must be refused or rejected.
func TestARequestByHandHidesNoOther(t *testing.T) {
	s := clitest.NewStage(t)
	other := colleague(t, s)
	for _, values := range []string{
		"'{NULL}', '{}', '{}', '{}'", "'{pause,NULL}', '{}', '{}', '{}'", "'{{pause,x}}', '{}', '{}', '{}'", "'[5:6]={pause,x}', '{}', '{}', '{}'",
		"'{x}', '{NULL}', '{x}', '{x}'", "'{x}', '{x}', '{NULL}', '{x}'", "'{x}', '{x}', '{x}', '{NULL}'", "'{x}', '{{x}}', '{{x}}', '{{x}}'",
	} {
		id := requestByHand(t, s, "'pause', "+values)
		t.Run(values, func(t *testing.T) {
			clitest.Contains(t, s.Must("requests", "--state=open"), id)
			refusedAsMadeByHand(t, s, other, id)
		})
	}
}
