package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/session"
	"projector/projection"
	"projector/projection/event"
)

// follower is a Trace that selects the records with a key. It also stores its calls.
type follower struct{ reported []string }

func (f *follower) say(format string, args ...any) {
	f.reported = append(f.reported, fmt.Sprintf(format, args...))
}

func (*follower) Pick(picked, records []*kgo.Record) []*kgo.Record {
	for _, r := range records {
		if r.Key != nil {
			picked = append(picked, r)
		}
	}
	return picked
}

func (f *follower) Folding(picked []*kgo.Record) {
	for _, r := range picked {
		f.say("folding %d", r.Offset)
	}
}

type followed struct{}

func (f *follower) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, followed{}, true)
}

func (f *follower) Flushing(next int64) { f.say("flushing to %d", next) }

func (f *follower) Flushed(next int64, c *projection.Flushed) {
	f.say("flushed to %d: %d", next, c.Records)
}

func (f *follower) Dropped(reason error) { f.say("dropped: %v", reason) }

// traced returns a worker whose trace is a follower.
func traced(t testing.TB, s *script) (*worker, *follower) {
	t.Helper()
	w, f := scripted(t, s), &follower{}
	w.trace, w.epoch = f, 1
	return w, f
}

// foldChunk decodes records as the worker's decoder does, and folds them.
func (w *worker) foldChunk(t testing.TB, raw []*kgo.Record) error {
	t.Helper()
	w.c.cfg.Formats = event.Always(noFormat{})
	w.queue.epoch = w.epoch
	if !w.decodeAll(raw, w.epoch) {
		t.Fatal("not decoded")
	}
	c := <-w.chunks
	defer c.release()
	return w.processChunk(c)
}

func TestRecordsAreTracedThroughTheirFlush(t *testing.T) {
	s := pending(0)
	s.context = func(ctx context.Context) {
		if ctx.Value(followed{}) == nil {
			t.Error("reading or writing is not reported whom it is for")
		}
	}
	w, f := traced(t, s)
	raw := records(0, 5)
	raw[1].Key, raw[4].Key = []byte("a"), []byte("b")
	if err := w.foldChunk(t, raw); err != nil {
		t.Fatal(err)
	}
	if err := w.flush(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"folding 1", "folding 4", "flushing to 5", "flushed to 5: 5"}; !slices.Equal(f.reported, want) {
		t.Errorf("%q, want %q", f.reported, want)
	}
}

// TestATracedFlushWhoseAnswerWasLost shows that the trace has the flush's real result, which the
// next claim finds in the database.
func TestATracedFlushWhoseAnswerWasLost(t *testing.T) {
	for name, c := range map[string]struct {
		row  projection.FencedOffset
		want string
	}{
		"written":     {projection.FencedOffset{Next: 5, Fence: 7}, "flushed to 5: 5"},
		"not written": {projection.FencedOffset{Next: 0, Fence: 7}, ""},
	} {
		s := pending(0)
		s.write = []error{errLost}
		w, f := traced(t, s)
		w.session.Begin(projection.Position{Fence: 7})
		raw := records(0, 5)
		raw[4].Key = []byte("b")
		if err := w.foldChunk(t, raw); err != nil {
			t.Fatal(err)
		}
		if err := w.flush(); !errors.Is(err, session.ErrAgain) {
			t.Fatal(err)
		}
		s.found = &c.row
		if _, err := w.claimOnce(t.Context(), projection.Claim{}); err != nil {
			t.Fatal(err)
		}
		want := slices.DeleteFunc([]string{"folding 4", "flushing to 5", c.want, "dropped: " + errLost.Error()}, func(s string) bool { return s == "" })
		if !slices.Equal(f.reported, want) {
			t.Errorf("%s: %q, want %q", name, f.reported, want)
		}
	}
}

func TestALargeChunkIsTracedThroughItsFlushes(t *testing.T) {
	s := pending(0)
	w, f := traced(t, s)
	w.flushing(2, s)
	raw := records(0, 5)
	raw[4].Key = []byte("a")
	if err := w.foldChunk(t, raw); err != nil {
		t.Fatal(err)
	}
	if want := []string{"folding 4", "flushing to 2", "flushed to 2: 2", "flushing to 4", "flushed to 4: 2"}; !slices.Equal(f.reported, want) {
		t.Errorf("%q, want %q", f.reported, want)
	}
}

func TestDroppedRecordsAreNoLongerTraced(t *testing.T) {
	s := pending(0)
	s.write = []error{projection.ErrFenced}
	w, f := traced(t, s)
	client, err := kgo.NewClient(w.c.cfg.Client...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	w.c.cl = client
	w.c.topic.asked = time.Now().Add(time.Hour) // so Kafka is not asked again
	w.c.topic.starts = kadm.ListedOffsets{"t": {0: {Topic: "t"}}}
	w.c.topic.ends = w.c.topic.starts
	w.c.cfg.Formats = event.Always(noFormat{})
	raw := records(0, 1)
	raw[0].Key = []byte("a")
	w.queue.epoch = w.epoch + 1
	if !w.decodeAll(raw, w.queue.epoch) {
		t.Fatal("not decoded")
	}
	if _, err := w.consume(projection.NoOffset); !errors.Is(err, session.ErrAgain) {
		t.Fatal(err)
	}
	if _, err := w.claimOnce(t.Context(), projection.Claim{}); err != nil { // the next claim
		t.Fatal(err)
	}
	if want := []string{"folding 0", "flushing to 1", "dropped: " + projection.ErrFenced.Error()}; !slices.Equal(f.reported, want) {
		t.Errorf("%q, want %q", f.reported, want)
	}
}

// TestDisabledTracingCostsNothing shows that the trace's methods do not allocate when tracing is
// off.
func TestDisabledTracingCostsNothing(t *testing.T) {
	w := scripted(t, pending(0))
	raw, c := records(0, 5), &projection.Flushed{}
	var picked []*kgo.Record
	if n := testing.AllocsPerRun(100, func() {
		picked = w.trace.Pick(picked, raw)
		w.trace.Folding(picked)
		w.trace.Flushing(5)
		if w.trace.Context(w.ctx) != w.ctx {
			t.Error("another context")
		}
		w.trace.Flushed(5, c)
		w.trace.Dropped(errDrained)
	}); n != 0 || picked != nil {
		t.Errorf("%v allocations, picked %v", n, picked)
	}
}

// BenchmarkChunk measures how long a chunk takes to be decoded and passed to the projection. The
// projection itself does nothing.
func BenchmarkChunk(b *testing.B) {
	s := pending(0)
	w := scripted(b, s)
	w.flushing(1<<40, s)
	raw := records(0, 512)
	w.c.cfg.Formats = event.Always(noFormat{})
	b.ReportAllocs()
	for b.Loop() {
		w.decodeAll(raw, w.epoch)
		c := <-w.chunks
		if err := w.processChunk(c); err != nil {
			b.Fatal(err)
		}
		c.release()
	}
}
