package event_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"projector/projection/event"
)

// readRecords returns the records of real producers in testdata, by file name.
func readRecords(t testing.TB, folder string) map[string]event.Message {
	t.Helper()
	paths, err := filepath.Glob("../../testdata/" + folder + "/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no examples in %s: %v", folder, err)
	}
	records := make(map[string]event.Message, len(paths))
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var record struct {
			Key, Value string
			Headers    [][2]string
		}
		if err := json.Unmarshal(text, &record); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		m := event.Message{Key: []byte(record.Key), Value: []byte(record.Value)}
		for _, h := range record.Headers {
			m.Headers = append(m.Headers, event.Header{Key: h[0], Value: []byte(h[1])})
		}
		records[filepath.Base(path)] = m
	}
	return records
}

func TestRecordsOfRealProducers(t *testing.T) {
	want := event.Event{
		ID: "7f9c24e8-3b12-4d0f-9c7e-2f1f6a1b2c3d", AccountID: "acc-1", CorrelationID: "c-1",
		TypeName: "FundsCredited", Type: event.TypeNamed("FundsCredited"), Version: 2,
		OccurredAt: time.Date(2026, 11, 21, 11, 50, 27, 475_594_000, time.UTC).UnixMicro(),
		Amount:     1025, Currency: currency(t, "EUR"),
	}
	for _, name := range []string{event.FormatDebezium, event.FormatCloudEvents} {
		f, err := event.New(name, options)
		if err != nil {
			t.Fatal(err)
		}
		for file, m := range readRecords(t, name) {
			if d := decodeMessage(f, m); d.Fault != nil || d.Event != want {
				t.Errorf("%s/%s:\n got %+v, fault %v\nwant %+v", name, file, d.Event, d.Fault, want)
			}
		}
	}
}
