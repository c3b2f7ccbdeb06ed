package registry_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"projector/projection/event"
)

// TestRecordsOfRealProducers reads records from Confluent's serializers, with recorded responses of
// a real registry. All records hold the same event.
func TestRecordsOfRealProducers(t *testing.T) {
	paths, err := filepath.Glob("../../testdata/schema-registry/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	currency, _ := event.CurrencyByCode("EUR")
	want := event.Event{
		ID: "7f9c24e8-3b12-4d0f-9c7e-2f1f6a1b2c3d", AccountID: "acc-1", CorrelationID: "c-1",
		TypeName: "FundsCredited", Type: event.TypeNamed("FundsCredited"), Version: 2,
		OccurredAt: time.Date(2026, 11, 21, 11, 50, 27, 475_594_000, time.UTC).UnixMicro(),
		Amount:     1025, Currency: currency,
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var example struct {
			Format   string
			Value    []byte
			Registry map[string]object // responses of the registry, by path
		}
		if err := json.Unmarshal(text, &example); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		s := newStub(t)
		s.schemas = example.Registry
		d := resolve(t, s.resolver(t, example.Format), event.Message{Value: example.Value})
		if d.Fault != nil || d.Identity != event.Identified || d.Event != want {
			t.Errorf("%s:\n got %+v, fault %v\nwant %+v", path, d.Event, d.Fault, want)
		}
	}
}
