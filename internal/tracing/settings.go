package tracing

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"strconv"
)

// Settings are what OpenTelemetry's own environment variables say of what is ours to
// decide. All others are the SDK's and the exporter's: endpoint, headers, TLS,
// time-outs, the names of the service.
type Settings struct {
	// Ratio is the share, from 0 to 1, of records to follow of those whose producer has
	// not decided.
	Ratio float64
}

// The variables that are checked. Those of traces beat the general ones.
const (
	envSampler        = "OTEL_TRACES_SAMPLER"
	envSamplerArg     = "OTEL_TRACES_SAMPLER_ARG"
	envProtocol       = "OTEL_EXPORTER_OTLP_PROTOCOL"
	envTracesProtocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	envEndpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	envTracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
)

// protocol is the only one there is an exporter for.
const protocol = "http/protobuf"

// ReadSettings reads the environment. An error names the variable and the remedy. The
// SDK itself would pass over what it cannot read, and send to somewhere else.
func ReadSettings() (Settings, error) {
	for _, name := range []string{envProtocol, envTracesProtocol} {
		if value := os.Getenv(name); value != "" && value != protocol {
			return Settings{}, fmt.Errorf("%s: %q is not spoken here; use %s, which receivers take at port 4318", name, value, protocol)
		}
	}
	for _, name := range []string{envEndpoint, envTracesEndpoint} {
		if err := checkEndpoint(name); err != nil {
			return Settings{}, err
		}
	}
	ratio, err := readRatio()
	return Settings{Ratio: ratio}, err
}

// checkEndpoint keeps the URL out of the error: it may hold a password.
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

// readRatio reads the sampler. One that does not ask the producer is none of ours: its
// traces would have no beginning.
func readRatio() (float64, error) {
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
