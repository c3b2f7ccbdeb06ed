package event_test

import (
	"slices"
	"strings"
	"testing"

	"projector/projection/event"
)

func TestNewChoosesByName(t *testing.T) {
	for _, name := range event.Formats() {
		f, err := event.New(name, options)
		if err != nil || f == nil {
			t.Errorf("New(%q): %v", name, err)
		}
	}
	f, err := event.New("json", options)
	if err != nil {
		t.Fatal(err)
	}
	if d := decode(f, change()); d.Fault != nil {
		t.Errorf("json: %v", d.Fault)
	}
}

func TestNewListsTheKnownNames(t *testing.T) {
	if !slices.IsSorted(event.Formats()) {
		t.Errorf("formats out of order: %v", event.Formats())
	}
	for _, name := range []string{"", "JSON", "avro"} {
		f, err := event.New(name, options)
		if f != nil || err == nil {
			t.Fatalf("New(%q) = %v, %v", name, f, err)
		}
		for _, known := range event.Formats() {
			if !strings.Contains(err.Error(), known) {
				t.Errorf("%v does not name %s", err, known)
			}
		}
	}
}
