package tracing

import (
	"context"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"projector/internal/retry"
)

// mostWaiting is how many spans may have ended and not left, about 2 KB each.
const mostWaiting = 2048

// queue drops a span when too many wait. The SDK's own processor, in which they wait,
// would do the same and tell nobody.
type queue struct {
	sdk.SpanProcessor
	t *Tracing
}

func newQueue(t *Tracing, sender sdk.SpanExporter) *queue {
	return &queue{sdk.NewBatchSpanProcessor(sender, sdk.WithMaxQueueSize(mostWaiting)), t}
}

// OnEnd implements sdk.SpanProcessor.
func (q *queue) OnEnd(s sdk.ReadOnlySpan) {
	if q.t.waiting.Add(1) > mostWaiting {
		q.t.waiting.Add(-1)
		q.t.cfg.Spans(Dropped, 1)
		return
	}
	q.SpanProcessor.OnEnd(s)
}

// sending counts what leaves, and tells of a receiver that takes nothing. Its errors
// end here: the SDK would print them.
type sending struct {
	sdk.SpanExporter
	t      *Tracing
	outage *retry.Throttled
}

// ExportSpans implements sdk.SpanExporter.
func (s *sending) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := s.SpanExporter.ExportSpans(ctx, spans)
	s.t.waiting.Add(-int64(len(spans)))
	if err != nil {
		s.t.cfg.Spans(Failed, len(spans))
	} else {
		s.t.cfg.Spans(Exported, len(spans))
	}
	s.outage.Note(err, 0)
	return nil
}

// Shutdown implements sdk.SpanExporter.
func (s *sending) Shutdown(ctx context.Context) error {
	_ = s.SpanExporter.Shutdown(ctx) // there is nothing left that could be done
	return nil
}
