package cli

import (
	"log/slog"
	"slices"
	"testing"

	"projector/internal/cli/build"
	"projector/projection/event"
)

func TestCheckBroker(t *testing.T) {
	for address, good := range map[string]bool{
		"localhost:9092": true, "kafka-0.kafka.svc": true, "10.0.0.1:19092": true, "[::1]:9092": true, "::1": true,
		"localhost:99999": false, "host:port:port": false, "a b": false, "": false, ":9092": false,
		"host:": false, "host:0": false, "http://host:9092": false, "user@host:9092": false,
	} {
		if err := checkBroker(address); (err == nil) != good {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func TestAListMayHaveSpaceAroundItsCommas(t *testing.T) {
	if got := items([]string{" a:1", "b:2 ", "", " "}); !slices.Equal(got, []string{"a:1", "b:2"}) {
		t.Errorf("%q", got)
	}
	f := kafkaFlags{Brokers: []string{"a:9092", " b:9092"}, Topic: "t"}
	if _, err := f.client(slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
	events := eventFlags{Format: "json", FirstVersion: 1, Currencies: "EUR, JPY", DebeziumTimeUnit: "rfc3339", IgnoreEventTypes: []string{"CardIssued", " CardLost"}}
	formats, err := events.formats()
	if err != nil {
		t.Fatal(err)
	}
	var d event.Decoded
	format, err := formats.Resolve(t.Context(), event.Message{})
	if err != nil {
		t.Fatal(err)
	}
	format.Decode(event.Message{Value: []byte(`{"eventId":"e","eventType":"CardLost","accountId":"a","version":1,"occurredAt":"2026-01-01T00:00:00Z"}`)}, &d)
	if d.Fault != nil || d.Event.Type != event.Ignorable {
		t.Errorf("type %v, fault %v", d.Event.Type, d.Fault)
	}
}

func TestBrokersAreToldTheVersion(t *testing.T) {
	parser, err := newParser(build.Info{Version: "v1.2.3+dirty"})
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.Parse([]string{"lag"})
	if err != nil {
		t.Fatal(err)
	}
	lag := parsed.Selected().Target.Addr().Interface().(*lagCmd)
	if got := softwareVersion(lag.built.Version); got != "v1.2.3-dirty" {
		t.Errorf("%q", got)
	}
}
