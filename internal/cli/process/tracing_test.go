package process

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"go.opentelemetry.io/otel"

	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
)

// builtWith builds a process from the defaults and from variables. The arguments env are pairs of a
// name and a value.
func builtWith(t *testing.T, env ...string) (*Process, error) {
	t.Helper()
	for pair := range slices.Chunk(env, 2) {
		t.Setenv(pair[0], pair[1])
	}
	var c Flags
	parser, err := kong.New(&c, kong.Bind(flags.BuildInfo{}), kong.DefaultEnvars("PROJECTOR"))
	if err == nil {
		_, err = parser.Parse(nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Build(t.Context(), slog.New(slog.DiscardHandler), flags.BuildInfo{})
	if err == nil {
		t.Cleanup(p.Close)
	}
	return p, err
}

func TestTracingIsOffByDefault(t *testing.T) {
	before := otel.GetTracerProvider()
	p, err := builtWith(t, "OTEL_TRACES_SAMPLER", "always_on", "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc") // variables of other programs
	if err != nil {
		t.Fatal(err)
	}
	if p.tracing != nil || p.pool.Config().ConnConfig.Tracer != nil {
		t.Error("something is traced")
	}
	if _, err := builtWith(t, "TRACING", "otlp", "OTEL_TRACES_SAMPLER", "", "OTEL_EXPORTER_OTLP_PROTOCOL", ""); err != nil {
		t.Fatal(err)
	}
	if otel.GetTracerProvider() != before {
		t.Error("a global provider was set")
	}
}

func TestTracingOnIsEverywhere(t *testing.T) {
	p, err := builtWith(t, "TRACING", "otlp")
	if err != nil {
		t.Fatal(err)
	}
	if p.tracing == nil || p.pool.Config().ConnConfig.Tracer == nil {
		t.Error("something is not traced")
	}
}

func TestWrongTracingIsAUsageError(t *testing.T) {
	for name, env := range map[string][]string{
		"--tracing (TRACING): ":         {"TRACING", "on"},
		"OTEL_TRACES_SAMPLER: ":         {"TRACING", "otlp", "OTEL_TRACES_SAMPLER", "always_on"},
		"OTEL_EXPORTER_OTLP_ENDPOINT: ": {"TRACING", "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318"},
		"OTEL_RESOURCE_ATTRIBUTES: ":    {"TRACING", "otlp", "OTEL_RESOURCE_ATTRIBUTES", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := builtWith(t, env...)
			var usage exit.UsageError
			if !errors.As(err, &usage) || !strings.HasPrefix(err.Error(), name) {
				t.Errorf("error %v", err)
			}
		})
	}
}
