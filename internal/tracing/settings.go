package tracing

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"projector/internal/retry"
)

// These are the variables that are checked. A variable with TRACES in its name takes precedence
// over the general variable.
const (
	envSampler        = "OTEL_TRACES_SAMPLER"
	envSamplerArg     = "OTEL_TRACES_SAMPLER_ARG"
	envProtocol       = "OTEL_EXPORTER_OTLP_PROTOCOL"
	envTracesProtocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	envEndpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	envTracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	envHeaders        = "OTEL_EXPORTER_OTLP_HEADERS"
	envTracesHeaders  = "OTEL_EXPORTER_OTLP_TRACES_HEADERS"
)

// protocol is the only supported protocol.
const protocol = "http/protobuf"

// ReadRatio checks the OpenTelemetry variables and returns the ratio for Config. The SDK and the
// exporter read all variables except those of the sampler. An error names the variable and says what
// to do. Without these checks, the SDK would ignore an invalid value and send the spans to its default
// endpoint.
func ReadRatio() (float64, error) {
	for _, name := range []string{envProtocol, envTracesProtocol} {
		if value := os.Getenv(name); value != "" && value != protocol {
			return 0, fmt.Errorf("%s: %q is not spoken here; use %s, which receivers take at port 4318", name, value, protocol)
		}
	}
	for _, name := range []string{envEndpoint, envTracesEndpoint} {
		if err := checkEndpoint(name); err != nil {
			return 0, err
		}
	}
	for _, name := range []string{envHeaders, envTracesHeaders} {
		if err := checkHeaders(name); err != nil {
			return 0, err
		}
	}
	return samplerRatio()
}

// checkEndpoint returns an error without the URL, because the URL may contain a password.
func checkEndpoint(name string) error {
	value := os.Getenv(name)
	if value == "" {
		return nil
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%s: is no URL of a receiver; give one such as http://localhost:4318", name)
	}
	return nil
}

// headerName matches valid names of headers.
var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// checkHeaders returns an error without the value, because the value may contain a token. The SDK
// would print the value.
func checkHeaders(name string) error {
	value := os.Getenv(name)
	if value == "" {
		return nil
	}
	for _, header := range strings.Split(value, ",") {
		key, text, found := strings.Cut(header, "=")
		_, err := url.PathUnescape(text)
		if !found || err != nil || !headerName.MatchString(strings.TrimSpace(key)) {
			return fmt.Errorf("%s: is not a list of NAME=VALUE separated by commas, in which %% is written as %%25 and a comma as %%2C", name)
		}
	}
	return nil
}

// samplerRatio reads the sampler and returns its ratio. Samplers that ignore the producer's decision
// are refused, because their traces would have no beginning.
func samplerRatio() (float64, error) {
	const byRatio = "parentbased_traceidratio"
	switch sampler := cmp.Or(os.Getenv(envSampler), byRatio); sampler {
	case "parentbased_always_off":
		return 0, nil
	case "parentbased_always_on":
		return 1, nil
	case byRatio:
	default:
		return 0, fmt.Errorf("%s: %q is not one of parentbased_always_off, parentbased_always_on, %s", envSampler, sampler, byRatio)
	}
	ratio, err := strconv.ParseFloat(cmp.Or(os.Getenv(envSamplerArg), "0"), 64)
	if err != nil || !(ratio >= 0 && ratio <= 1) {
		return 0, fmt.Errorf("%s: must be a number from 0 to 1", envSamplerArg)
	}
	return ratio, nil
}

// mostWaiting is how many spans may wait to be sent. A span needs about 2 KB.
const mostWaiting = 2048

// queue drops a span when too many spans wait, and counts the dropped span. The processor of the
// SDK would drop the span without counting it.
type queue struct {
	sdk.SpanProcessor
	t *Tracing
}

func (q *queue) OnEnd(s sdk.ReadOnlySpan) {
	if q.t.waiting.Add(1) > mostWaiting {
		q.t.waiting.Add(-1)
		q.t.cfg.Spans(Dropped, 1)
		return
	}
	q.SpanProcessor.OnEnd(s)
}

// sending counts the spans that are sent or have failed, and logs the failures and the recovery of
// the receiver. It does not return the receiver's errors, because the SDK would print them.
type sending struct {
	sdk.SpanExporter
	t      *Tracing
	outage *retry.Throttled
}

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

func (s *sending) Shutdown(ctx context.Context) error {
	_ = s.SpanExporter.Shutdown(ctx) // at shutdown, nothing can be done about an error
	return nil
}
