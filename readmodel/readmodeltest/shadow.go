package readmodeltest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/readmodel"
	"projector/readmodel/rebuild"
)

// RowShadow is a projection that is rebuilt from a list of values.
type RowShadow struct {
	*rebuild.Shadow
	t     testing.TB
	topic []string
	feed  *Feeder
}

// OpenRowShadow creates the tables of the rebuild. They are dropped when the test ends.
func OpenRowShadow(t testing.TB, pool *pgxpool.Pool, kind readmodel.Definition, topic []string) *RowShadow {
	t.Helper()
	shadow, err := rebuild.OpenShadow(t.Context(), pool, kind, 100, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shadow.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return &RowShadow{Shadow: shadow, t: t, topic: topic, feed: FeederOn(t, shadow.Open(readmodel.RunConfig{}, "events", 0))}
}

// catchUp implements rebuild.CatchUp.
func (s *RowShadow) catchUp(_ context.Context, positions []rebuild.TopicPosition) error {
	end := positions[0].Next
	s.feed.Feed(s.topic[min(s.feed.Next, end):end]...)
	return nil
}

// MustCompare compares the rebuilt rows with the live rows.
func (s *RowShadow) MustCompare() rebuild.Report {
	s.t.Helper()
	report, err := s.Compare(s.t.Context(), rebuild.CompareOptions{Topic: "events", List: 100}, s.catchUp)
	if err != nil {
		s.t.Fatal(err)
	}
	return report
}

// MustSwap writes the rebuilt rows to the live tables.
func (s *RowShadow) MustSwap() {
	s.t.Helper()
	if _, err := s.Swap(s.t.Context(), rebuild.SwapOptions{Topic: "events", Actor: "me"}, s.catchUp); err != nil {
		s.t.Fatal(err)
	}
}
