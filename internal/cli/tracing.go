package cli

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/consumer"
	"projector/internal/tracing"
	"projector/readmodel"
)

// tracingFlags say whether single records are followed. Where the spans go, and how many
// records without a decision of their producer are followed, is for OpenTelemetry's own
// variables to say.
type tracingFlags struct {
	Tracing string `env:"TRACING" default:"off" placeholder:"EXPORTER" group:"Tracing" help:"off, or otlp: follow the records whose header traceparent asks for it, and a share OTEL_TRACES_SAMPLER_ARG of the others, and send the spans to OTEL_EXPORTER_OTLP_ENDPOINT (default off)."`
}

const (
	tracingOff  = "off"
	tracingOTLP = "otlp"
)

func (f *tracingFlags) validate() error {
	if f.Tracing != tracingOff && f.Tracing != tracingOTLP {
		return usagef("--tracing (TRACING): %q is unknown; use %s or %s", f.Tracing, tracingOff, tracingOTLP)
	}
	return nil
}

// traced is where tracing is put into a process; empty when it is off.
type traced struct {
	database   []readmodel.ConnectOption
	consuming  []kgo.Hook
	publishing []kgo.Hook
	partition  func(int32) consumer.Trace
}

// trace prepares tracing, if it is on.
func (p *process) trace(ctx context.Context, c *runCmd) (traced, error) {
	for _, result := range tracing.Results() {
		p.metrics.Spans(string(result), 0)
	}
	if c.Tracing != tracingOTLP {
		return traced{}, nil
	}
	settings, err := tracing.ReadSettings()
	if err != nil {
		return traced{}, usageError{err}
	}
	t, err := tracing.New(ctx, tracing.Config{
		Settings: settings, Topic: c.Topic, Group: c.group(), Projection: c.Projection, Version: p.built.Version, Log: p.log,
		Spans: func(result tracing.Result, n int) { p.metrics.Spans(string(result), n) },
	})
	if err != nil {
		return traced{}, usageError{err}
	}
	p.tracing = t
	return traced{
		database:   []readmodel.ConnectOption{readmodel.WithTracer(t.Database())},
		consuming:  []kgo.Hook{t.Consuming()},
		publishing: []kgo.Hook{t.Publishing()},
		partition:  func(number int32) consumer.Trace { return t.Partition(number) },
	}, nil
}

// endTracing sends what spans there are, for as long as ctx allows.
func (p *process) endTracing(ctx context.Context) {
	if p.tracing != nil {
		p.tracing.Shutdown(ctx)
	}
}
