package replay_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"projector/internal/replay"
	"projector/projection"
	"projector/readmodel"
)

// slow is a read model that does not answer.
type slow struct{ replay.Store }

func (slow) ReplayStatuses(ctx context.Context, _ []readmodel.Subject) ([]projection.ReplayStatus, error) {
	<-ctx.Done()
	return nil, fmt.Errorf("load accounts: %w", ctx.Err())
}

// TestASlowDatabaseIsNamed shows that the error names PostgreSQL, and that its cause stays known.
func TestASlowDatabaseIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := replay.Assess(t.Context(), slow{}, []*replay.DeadLetter{{}})
		if err == nil || err.Error() != "no answer from PostgreSQL within 25s" || !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}
