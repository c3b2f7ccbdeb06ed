package devtest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// SpanReceiver receives spans by OTLP over HTTP, in this process.
type SpanReceiver struct {
	URL string

	mu       sync.Mutex
	requests int
	raw      []byte
	spans    []*otlp.Span
}

// Spans starts a receiver that lives as long as the test.
func Spans(t testing.TB) *SpanReceiver {
	t.Helper()
	r := &SpanReceiver{}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.URL = server.URL
	return r
}

func (r *SpanReceiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	var export collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &export)
	}
	if err == nil && request.URL.Path != "/v1/traces" {
		err = fmt.Errorf("path %s", request.URL.Path)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	r.raw = append(r.raw, body...)
	for _, resource := range export.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			r.spans = append(r.spans, scope.GetSpans()...)
		}
	}
}

// Requests returns how many requests the receiver got.
func (r *SpanReceiver) Requests() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests
}

// Raw returns the bodies of all requests, so that a test can search for text.
func (r *SpanReceiver) Raw() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.raw)
}

// All returns the spans received so far.
func (r *SpanReceiver) All() []*otlp.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.spans)
}

// Named returns the spans with a name.
func (r *SpanReceiver) Named(name string) []*otlp.Span {
	return slices.DeleteFunc(r.All(), func(s *otlp.Span) bool { return s.GetName() != name })
}
