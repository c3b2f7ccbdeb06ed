package events_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"projector/internal/cli/events"
	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/projection/event"
)

func TestSchemaRegistryFlags(t *testing.T) {
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	with := func(edit func(*events.RegistryFlags)) events.RegistryFlags {
		f := events.RegistryFlags{SchemaRegistryURL: []string{"https://a:8081", " http://b/apis/ccompat/v7 "}}
		edit(&f)
		return f
	}
	for name, tt := range map[string]struct {
		flags events.RegistryFlags
		says  string // empty: no error
	}{
		"two":       {with(func(*events.RegistryFlags) {}), ""},
		"user":      {with(func(f *events.RegistryFlags) { f.SchemaRegistryUsername, f.SchemaRegistryPasswordFile = "u", password }), ""},
		"none":      {with(func(f *events.RegistryFlags) { f.SchemaRegistryURL = nil }), "is needed for --format=avro"},
		"no scheme": {with(func(f *events.RegistryFlags) { f.SchemaRegistryURL = []string{"registry:8081"} }), "--schema-registry-url"},
		"password in the URL": {
			with(func(f *events.RegistryFlags) { f.SchemaRegistryURL = []string{"https://u:hunter2@a"} }), "--schema-registry-username",
		},
		"unreadable URL": {with(func(f *events.RegistryFlags) { f.SchemaRegistryURL = []string{"https://u:hunter2@a:%%"} }), "must be a URL"},
		"query":          {with(func(f *events.RegistryFlags) { f.SchemaRegistryURL = []string{"https://a?x=hunter2"} }), "query"},
		"user alone":     {with(func(f *events.RegistryFlags) { f.SchemaRegistryUsername = "u" }), "give both or none"},
		"password alone": {with(func(f *events.RegistryFlags) { f.SchemaRegistryPassword = "hunter2" }), "give both or none"},
		"both passwords": {with(func(f *events.RegistryFlags) {
			f.SchemaRegistryUsername, f.SchemaRegistryPassword, f.SchemaRegistryPasswordFile = "u", "hunter2", password
		}), "give one of them"},
		"no such file": {with(func(f *events.RegistryFlags) {
			f.SchemaRegistryUsername, f.SchemaRegistryPasswordFile = "u", password+"x"
		}), "--schema-registry-password-file"},
		"no such CA": {with(func(f *events.RegistryFlags) { f.SchemaRegistryCA = password + "x" }), "--schema-registry-ca"},
	} {
		f := events.EventFlags{Format: "avro", FirstVersion: 1, Currencies: "all", DebeziumTimeUnit: "rfc3339", RegistryFlags: tt.flags}
		_, err := f.Formats(func() ([]string, error) { return nil, nil })
		var usage exit.UsageError
		switch {
		case tt.says == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tt.says == "":
		case !errors.As(err, &usage) || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "hunter2"):
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEventTypesMayHaveSpaceAroundTheirCommas(t *testing.T) {
	f := events.EventFlags{Format: "json", FirstVersion: 1, Currencies: "EUR, JPY", DebeziumTimeUnit: "rfc3339", IgnoreEventTypes: []string{"CardIssued", " CardLost"}}
	formats, err := f.Formats(func() ([]string, error) { return nil, nil })
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

// TestAMappingIsReadOnce changes the file of a mapping after it was read. The mapping that is stored
// is still the one with which the events are read.
func TestAMappingIsReadOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mapping.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("fields: {amount: {unit: minor}}")
	f := events.EventFlags{Format: "json", Currencies: "all", DebeziumTimeUnit: "rfc3339", FirstVersion: 1, Mapping: flags.FileNamed(path)}
	if _, err := f.Formats(func() ([]string, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	before, err := f.Reads()
	if err != nil {
		t.Fatal(err)
	}
	meaning := before.Meaning()
	write("fields: {amount: {scale: 3}}")
	after, err := f.Reads()
	if err != nil || after.Meaning() != meaning || !strings.Contains(meaning, "minor") {
		t.Errorf("read as %s, stored as %s, %v", meaning, after.Meaning(), err)
	}
}
