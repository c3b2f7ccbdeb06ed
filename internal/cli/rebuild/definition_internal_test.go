package rebuild

import (
	"strings"
	"testing"

	"projector/readmodel/balance"
)

// limits is a projection with a Definition that the program does not have.
type limits struct{ balance.Definition }

func (limits) Name() string { return "account_limits" }

// TestRebuildRefusesADefinitionItDoesNotKnow: an unknown definition must not be treated as one of
// the others.
func TestRebuildRefusesADefinitionItDoesNotKnow(t *testing.T) {
	r := &rebuilding{cmd: &options{}, kind: limits{}}
	if err := r.open(t.Context()); err == nil || !strings.Contains(err.Error(), "account_limits cannot be rebuilt") {
		t.Errorf("%v", err)
	}
}
