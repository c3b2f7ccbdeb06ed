package tracing_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"

	"projector/internal/devstack/devtest"
	"projector/projection"
)

func TestADeadLetterIsPublishedAsItIs(t *testing.T) {
	received := devtest.Spans(t)
	tr, _ := start(t, received.URL, 1, quiet)
	hook := tr.Publishing()
	publish := func(r *kgo.Record, err error) *kgo.Record {
		r.Topic, r.Context = "account-events.dlq", t.Context()
		hook.(kgo.HookProduceRecordBuffered).OnProduceRecordBuffered(r)
		hook.(kgo.HookProduceRecordUnbuffered).OnProduceRecordUnbuffered(r, err)
		return r
	}
	followed := publish(record(1, "traceparent", sampled, "tracestate", "vendor=x"), errors.New("refused: "+secret))
	other := publish(record(2, "source", "core"), nil)
	end(tr)
	if got := followed.Headers; len(got) != 2 || string(got[0].Value) != sampled || string(got[1].Value) != "vendor=x" {
		t.Errorf("headers %v", got)
	}
	if len(other.Headers) != 1 {
		t.Errorf("headers %v", other.Headers)
	}
	s := one(t, received.All())
	if s.GetName() != "account-events.dlq publish" || hex.EncodeToString(s.GetTraceId()) != traceID || hex.EncodeToString(s.GetParentSpanId()) != parentID {
		t.Errorf("span %v", s)
	}
	if bytes.Contains(received.Raw(), []byte(secret)) {
		t.Error("a span tells a key, a value or an error's text")
	}
}

func TestAFlushThatIsGivenUpEnds(t *testing.T) {
	received := devtest.Spans(t)
	tr, _ := start(t, received.URL, 0, quiet)
	p := tr.Partition(0)
	p.Folding(p.Pick(nil, fetch(tr, record(1, "traceparent", sampled))))
	p.Flushing(2)
	p.Dropped(projection.ErrFenced)
	p.Flushed(9, &projection.Flushed{}) // this flush has no traced record
	end(tr)
	if s := one(t, received.Named("account_balance flush")); s.GetStatus().GetCode() != otlp.Status_STATUS_CODE_ERROR {
		t.Errorf("status %v", s.GetStatus())
	}
	if n := len(received.All()); n != 3 {
		t.Errorf("%d spans, want receive, process and flush", n)
	}
}

func TestFlushOfManyNamesSome(t *testing.T) {
	received := devtest.Spans(t)
	tr, _ := start(t, received.URL, 1, quiet)
	p := tr.Partition(0)
	for offset := range int64(300) {
		p.Folding(p.Pick(nil, fetch(tr, record(offset))))
	}
	p.Flushing(300)
	p.Flushed(300, &projection.Flushed{Records: 300})
	end(tr)
	if n := len(one(t, received.Named("account_balance flush")).GetLinks()); n != 128 {
		t.Errorf("%d links, want 128", n)
	}
	for _, s := range received.Named("account-events process") {
		if len(s.GetLinks()) != 1 {
			t.Fatal("a record does not name its flush")
		}
	}
}
