package tracing_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"projector/internal/tracing"
	"projector/projection"
)

// TestNoReceiver shows that spans are dropped if the receiver does not answer or does not exist.
func TestNoReceiver(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	const records = 20_000
	for name, address := range map[string]string{"silent": listener.Addr().String(), "gone": "127.0.0.1:1"} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			began := time.Now()
			tr, counted := start(t, "http://"+address, 1, slog.New(slog.NewJSONHandler(&log, nil)))
			p := tr.Partition(0)
			for offset := range int64(records) {
				p.Folding(p.Pick(nil, fetch(tr, record(offset))))
			}
			p.Flushing(records)
			p.Flushed(records, &projection.Flushed{Records: records})
			limit := time.Minute
			if name == "silent" {
				limit = time.Second // waits until the limit
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			tr.Shutdown(ctx)
			if counted.get(tracing.Dropped) == 0 || counted.get(tracing.Exported) != 0 {
				t.Errorf("counted %v", counted.of)
			}
			if name == "silent" {
				return // the last request may still end, and be logged
			}
			// The next line may be written after 10 s, which the test reaches only on a slow machine.
			if n := strings.Count(log.String(), "\n"); n < 1 || n > 1+int(time.Since(began)/(10*time.Second)) {
				t.Errorf("the log has not one line: %s", log.String())
			}
		})
	}
}

func TestSettings(t *testing.T) {
	for name, c := range map[string]struct {
		env   map[string]string
		ratio float64
		wrong string
	}{
		"none":          {nil, 0, ""},
		"a share":       {map[string]string{"OTEL_TRACES_SAMPLER_ARG": "0.25"}, 0.25, ""},
		"all":           {map[string]string{"OTEL_TRACES_SAMPLER": "parentbased_always_on"}, 1, ""},
		"none on top":   {map[string]string{"OTEL_TRACES_SAMPLER": "parentbased_always_off", "OTEL_TRACES_SAMPLER_ARG": "1"}, 0, ""},
		"empty":         {map[string]string{"OTEL_TRACES_SAMPLER": "", "OTEL_TRACES_SAMPLER_ARG": "", "OTEL_EXPORTER_OTLP_ENDPOINT": ""}, 0, ""},
		"endpoint":      {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://collector:4318/otlp"}, 0, ""},
		"other sampler": {map[string]string{"OTEL_TRACES_SAMPLER": "always_on"}, 0, "OTEL_TRACES_SAMPLER"},
		"no share":      {map[string]string{"OTEL_TRACES_SAMPLER_ARG": "NaN"}, 0, "OTEL_TRACES_SAMPLER_ARG"},
		"too much":      {map[string]string{"OTEL_TRACES_SAMPLER_ARG": "1.5"}, 0, "OTEL_TRACES_SAMPLER_ARG"},
		"grpc":          {map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, 0, "OTEL_EXPORTER_OTLP_PROTOCOL"},
		"json":          {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/json"}, 0, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"},
		"no scheme":     {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318"}, 0, "OTEL_EXPORTER_OTLP_ENDPOINT"},
		"no URL":        {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://user:hunter2@%zz"}, 0, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"},
	} {
		t.Run(name, func(t *testing.T) {
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			got, err := tracing.ReadRatio()
			switch {
			case c.wrong == "" && (err != nil || got != c.ratio):
				t.Errorf("%v, %v; want ratio %v", got, err, c.ratio)
			case c.wrong != "" && (err == nil || !strings.HasPrefix(err.Error(), c.wrong+": ")):
				t.Errorf("error %v does not name %s", err, c.wrong)
			case err != nil && strings.Contains(err.Error(), "hunter2"):
				t.Error("the error tells a password")
			}
		})
	}
}
