package readmodel_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/readmodel"
	"projector/readmodel/rebuild"
)

// rowShadow is a projection that is rebuilt from a list of values.
type rowShadow struct {
	*rebuild.Shadow
	t     *testing.T
	topic []string
	feed  *feeder
	done  rebuild.Swapped
}

func openRowShadow(t *testing.T, pool *pgxpool.Pool, kind readmodel.Definition, topic []string) *rowShadow {
	t.Helper()
	shadow, err := rebuild.OpenShadow(t.Context(), pool, kind, 100, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := &rowShadow{Shadow: shadow, t: t, topic: topic}
	t.Cleanup(s.drop)
	s.feed = &feeder{t: t, format: jsonFormat(t), Projection: shadow.Open(readmodel.RunConfig{}, "events", 0), counts: map[string]int{}}
	s.feed.claim(projection.NoOffset)
	return s
}

// drop drops the tables. A second call does nothing.
func (s *rowShadow) drop() {
	if s.Shadow == nil {
		return
	}
	if err := s.Close(context.WithoutCancel(s.t.Context())); err != nil {
		s.t.Error(err)
	}
	s.Shadow = nil
}

// catchUp implements rebuild.CatchUp.
func (s *rowShadow) catchUp(_ context.Context, positions []rebuild.TopicPosition) error {
	end := positions[0].Next
	s.feed.feed(s.topic[min(s.feed.next, end):end]...)
	return nil
}

func (s *rowShadow) compare() rebuild.Report {
	s.t.Helper()
	report, err := s.Compare(s.t.Context(), rebuild.CompareOptions{Topic: "events", List: 100}, s.catchUp)
	if err != nil {
		s.t.Fatal(err)
	}
	return report
}

func (s *rowShadow) swap(remove bool) {
	s.t.Helper()
	var err error
	if s.done, err = s.Swap(s.t.Context(), rebuild.SwapOptions{Topic: "events", Actor: "me", Remove: remove}, s.catchUp); err != nil {
		s.t.Fatal(err)
	}
}
