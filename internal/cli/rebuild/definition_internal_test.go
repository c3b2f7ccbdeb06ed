package rebuild

import (
	"strings"
	"testing"

	"projector/readmodel/balance"
)

// The type limits is a projection whose Definition a rebuild does not know.
type limits struct{ balance.Definition }

func (limits) Name() string { return "account_limits" }

// TestRebuildRefusesADefinitionItDoesNotKnow shows that an unknown definition is refused and not
// treated as another one.
func TestRebuildRefusesADefinitionItDoesNotKnow(t *testing.T) {
	r := &rebuilding{cmd: &options{}, kind: limits{}}
	if err := r.open(t.Context()); err == nil || !strings.Contains(err.Error(), "account_limits cannot be rebuilt") {
		t.Errorf("%v", err)
	}
}
