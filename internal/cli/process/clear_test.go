package process

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"projector/internal/cli/flags"
)

// TestWhatTravelsUnprotectedIsWarnedAboutOnce shows that each warning is logged only one time, at
// the start, with its remedy and without a secret.
func TestWhatTravelsUnprotectedIsWarnedAboutOnce(t *testing.T) {
	for name, value := range map[string]string{ //nolint:gosec // G101: passwords of the test
		"DATABASE_URL":  "postgres://u:secret-word@db/bank",
		"KAFKA_BROKERS": "kafka:9092", "KAFKA_SASL_MECHANISM": "SCRAM-SHA-512", "KAFKA_SASL_USERNAME": "u", "KAFKA_SASL_PASSWORD": "secret-word",
		"OUTBOX_URL":   "postgres://u:secret-word@core/core?sslmode=require",
		"OUTBOX_QUERY": "SELECT key, value FROM outbox WHERE id = ANY ($1::text[]) AND version = ANY ($2::bigint[])",
		"EVENT_FORMAT": "avro", "SCHEMA_REGISTRY_URL": "http://registry:8081",
		"SCHEMA_REGISTRY_USERNAME": "u", "SCHEMA_REGISTRY_PASSWORD": "secret-word",
		"READ_LISTEN_ADDR": "127.0.0.1:0", // another pool of the same database
	} {
		t.Setenv(name, value)
	}
	var (
		c   Flags
		log bytes.Buffer
	)
	parser, err := kong.New(&c, kong.Bind(flags.BuildInfo{}), kong.DefaultEnvars("PROJECTOR"))
	if err == nil {
		_, err = parser.Parse(nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Build(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), flags.BuildInfo{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	for _, want := range []string{"--database-url", "--outbox-url", "--schema-registry-url", "connect by --tls"} {
		if n := strings.Count(log.String(), want); n != 1 {
			t.Errorf("%s is named %d times", want, n)
		}
	}
	if strings.Count(log.String(), "level=WARN") != 4 || strings.Contains(log.String(), "secret-word") {
		t.Errorf("the log:\n%s", &log)
	}
}

func TestAShortTokenOfReadersIsRefused(t *testing.T) {
	for token, want := range map[string]string{
		"x": "fewer than 16 bytes", "               \n": "fewer than 16 bytes", "123456789012345\n": "fewer than 16 bytes", "1234567890123456\n": "",
		"1234567890123456\n6543210987654321\n": "one token", " 1234567890123456 \n": "",
	} {
		file := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := builtWith(t, "READ_LISTEN_ADDR", "127.0.0.1:0", "READ_TOKEN_FILE", file)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--read-token-file")) {
			t.Errorf("%q: %v", token, err)
		}
	}
}

// The program must refuse a wrong header, because OpenTelemetry's own logger would print the header
// with the token in it.
func TestAWrongHeaderOfTracingIsRefusedWithoutItsValue(t *testing.T) {
	for _, variable := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		for _, wrong := range []string{"authorization=Bearer %Zq7secret", "Zq7secret", "a=b,Zq7secret", "a b=Zq7secret"} {
			_, err := builtWith(t, "TRACING", "otlp", variable, wrong)
			if err == nil || strings.Contains(err.Error(), "Zq7") || !strings.Contains(err.Error(), variable) {
				t.Errorf("%s=%s: %v", variable, wrong, err)
			}
		}
		if _, err := builtWith(t, "TRACING", "otlp", variable, "authorization=Bearer%20abc%25,x-tenant=bank"); err != nil {
			t.Error(err)
		}
	}
}
