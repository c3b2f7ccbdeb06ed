package e2e_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"

	"projector/internal/devstack/devtest"
	"projector/internal/testbank"
)

// startTraced runs a projector that sends spans to url, with extra environment variables.
func (w *world) startTraced(url string, env ...string) *program {
	w.t.Helper()
	env = append(env, "DATABASE_URL="+w.url, "KAFKA_BROKERS="+w.addrs[0], "OTEL_EXPORTER_OTLP_ENDPOINT="+url, "OTEL_BSP_SCHEDULE_DELAY=50")
	return launch(w.t, []string{password(w.t, w.url)}, env, w.flags()...)
}

// parentOf returns the trace header of a producer. It makes the producer's span the parent.
func parentOf(trace byte) kgo.RecordHeader {
	id := strings.Repeat(hex.EncodeToString([]byte{trace}), 16)
	return kgo.RecordHeader{Key: "traceparent", Value: []byte("00-" + id + "-" + id[:16] + "-01")}
}

// inTrace returns the spans received so far for the trace of parentOf.
func inTrace(r *devtest.SpanReceiver, trace byte) []*otlp.Span {
	return slices.DeleteFunc(r.All(), func(s *otlp.Span) bool {
		return !bytes.Equal(s.GetTraceId(), bytes.Repeat([]byte{trace}, 16))
	})
}

// hasSpans returns a check for await. It succeeds when the trace has the given number of spans of
// each name.
func hasSpans(r *devtest.SpanReceiver, trace byte, want map[string]int) func() string {
	return func() string {
		got := map[string]int{}
		for _, s := range inTrace(r, trace) {
			got[s.GetName()]++
		}
		for name, n := range want {
			if got[name] != n {
				return fmt.Sprintf("spans %v, want %v", got, want)
			}
		}
		return ""
	}
}

func TestARecordIsTracedFromItsProducerToTheTransaction(t *testing.T) {
	t.Parallel()
	w, spans := newWorld(t, 1), devtest.Spans(t)
	receive, process, publish := w.topic+" receive", w.topic+" process", w.dlq+" publish"
	const amount = "31415.92"
	good, other, gap := credit("acc-1", 1), credit("acc-1", 2), credit("acc-2", 2)
	good.Value = bytes.ReplaceAll(good.Value, []byte("0.01"), []byte(amount))
	good.Headers, gap.Headers = []kgo.RecordHeader{parentOf(0xa1)}, []kgo.RecordHeader{{Key: "source", Value: nil}, parentOf(0xb2), {Key: "tracestate", Value: []byte("bank=x")}}
	p := w.startTraced(spans.URL, "TRACING=otlp")
	w.append(good, other, gap)
	await(t, "the good record is projected", w.reads("acc-1", "2 31415.93 false"))
	await(t, "the good record's trace", hasSpans(spans, 0xa1, map[string]int{receive: 1, process: 1}))
	await(t, "the dead letter's trace", hasSpans(spans, 0xb2, map[string]int{receive: 1, process: 1, publish: 1}))

	var flush *otlp.Span
	await(t, "the flush that links to the record", func() string {
		record := slices.DeleteFunc(inTrace(spans, 0xa1), func(s *otlp.Span) bool { return s.GetName() != process })[0]
		for _, s := range spans.Named("account_balance flush") {
			if slices.ContainsFunc(s.GetLinks(), func(l *otlp.Span_Link) bool { return bytes.Equal(l.GetSpanId(), record.GetSpanId()) }) {
				flush = s
				return ""
			}
		}
		return "no such flush"
	})
	for _, statement := range []string{"pool.acquire", "BEGIN", "position_move", "insert_balance", "COMMIT"} {
		await(t, "the flush's "+statement, func() string {
			for _, s := range spans.Named(statement) {
				if bytes.Equal(s.GetTraceId(), flush.GetTraceId()) {
					return ""
				}
			}
			return "not in the trace of the flush"
		})
	}
	letter := w.deadLetterHeaders(t)
	if len(letter) < 3 || letter[0].Key != "source" || letter[0].Value != nil ||
		letter[1].Key != "traceparent" || !bytes.Equal(letter[1].Value, parentOf(0xb2).Value) || string(letter[2].Value) != "bank=x" {
		t.Errorf("headers of the dead letter: %v", letter)
	}
	if strings.Count(fmt.Sprint(letter), "traceparent") != 1 {
		t.Errorf("another traceparent: %v", letter)
	}

	// A record that a replay sends must belong to the trace of its dead letter.
	env := []string{"DATABASE_URL=" + w.url, "KAFKA_BROKERS=" + w.addrs[0]}
	w.append(credit("acc-2", 1))
	status, stdout, stderr := once(t, env, "dlq", "replay", "--topic="+w.topic, "--group="+w.group, "--to-topic="+w.topic, "--status=open,ready,waiting,resolved", "--yes")
	if status != 0 {
		t.Fatalf("dlq replay: exit status %d\n%s%s", status, stdout, stderr)
	}
	await(t, "the replayed record in its trace", hasSpans(spans, 0xb2, map[string]int{receive: 2, process: 2, publish: 1}))
	p.terminate()
	for _, secret := range []string{"acc-1", "acc-2", amount, password(t, w.url)} {
		if secret != "" && bytes.Contains(spans.Raw(), []byte(secret)) {
			t.Errorf("the spans have %q", secret)
		}
	}
}

// deadLetterHeaders returns the headers of the only dead letter.
func (w *world) deadLetterHeaders(t testing.TB) []kgo.RecordHeader {
	t.Helper()
	letters := w.read(w.dlq)
	if len(letters) != 1 {
		t.Fatalf("%d dead letters", len(letters))
	}
	var headers []kgo.RecordHeader
	for _, h := range letters[0].Headers {
		headers = append(headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	return headers
}

// TestTracingChangesNothing traces every record. The spans exceed the limits of the program. The
// read model and the dead letters must still equal those of the oracle byte by byte.
func TestTracingChangesNothing(t *testing.T) {
	t.Parallel()
	w, spans := newWorld(t, 3), devtest.Spans(t)
	w.produce(testbank.Generate(testbank.Options{
		Seed: seed(t), Records: scaled(15_000), Partitions: w.partitions, Accounts: 500, Rivals: true, Transactions: true,
	}))
	o := w.oracle()
	p := w.startTraced(spans.URL, "TRACING=otlp", "OTEL_TRACES_SAMPLER=parentbased_always_on")
	w.exact(o, exactlyOnce)
	w.conserved(p, o)
	p.terminate()
	w.atRest()
	if len(spans.Raw()) == 0 { // the receiver gets only some spans, because spans above the limit are dropped
		t.Error("nothing was traced")
	}
	if bytes.Contains(spans.Raw(), []byte(testbank.Marker)) {
		t.Error("a span tells a payload")
	}
}

// TestReceiverOfSpansAway sends spans to a closed port, and to a server that never answers. Records
// are projected and the program stops in time.
func TestReceiverOfSpansAway(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	for name, address := range map[string]string{"gone": "127.0.0.1:1", "silent": silent.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 3)
			w.produce(testbank.Generate(testbank.Options{Seed: seed(t), Records: 3000, Partitions: w.partitions, Accounts: 100}))
			o, began := w.oracle(), time.Now()
			p := w.startTraced("http://"+address, "TRACING=otlp", "OTEL_TRACES_SAMPLER=parentbased_always_on")
			w.exact(o, exactlyOnce)
			await(t, "ready", p.answers("/readyz", 200, ""))
			if name == "gone" {
				await(t, "spans that failed", func() string {
					if p.metrics()[`projector_trace_spans_total{result="failed"}`] == 0 {
						return "none"
					}
					return ""
				})
			}
			p.terminate()
			w.atRest()
			if n := strings.Count(p.log(), "export spans"); n > 1+int(time.Since(began)/(10*time.Second)) {
				t.Errorf("reported %d times", n)
			}
		})
	}
}

func TestNothingIsTracedUnlessAskedFor(t *testing.T) {
	t.Parallel()
	w, spans := newWorld(t, 1), devtest.Spans(t)
	p := w.startTraced(spans.URL, "OTEL_TRACES_SAMPLER=parentbased_always_on")
	r := credit("acc-1", 1)
	r.Headers = []kgo.RecordHeader{parentOf(0xc3)}
	w.append(r)
	await(t, "the record is projected", w.reads("acc-1", "1 0.01 false"))
	p.terminate()
	if n := spans.Requests(); n != 0 {
		t.Errorf("%d requests", n)
	}
}
