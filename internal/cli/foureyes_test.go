package cli

import (
	"reflect"
	"slices"
	"testing"

	"projector/internal/cli/foureyes"
)

// TestWhateverChangesSomethingPassesTheGate: a command that is told --yes asks whether
// somebody else has to agree, and a file it reads is kept for him.
func TestWhateverChangesSomethingPassesTheGate(t *testing.T) {
	gate, changes := reflect.TypeFor[*foureyes.Gate](), 0
	for _, leaf := range parserOf(t).Model.Leaves(false) {
		if !foureyes.Changes(leaf) {
			continue
		}
		changes++
		run, found := reflect.PointerTo(leaf.Target.Type()).MethodByName("Run")
		if !found {
			t.Fatalf("%s has no method Run", leaf.Path())
		}
		var takes []reflect.Type
		for i := range run.Type.NumIn() {
			takes = append(takes, run.Type.In(i))
		}
		if !slices.Contains(takes, gate) {
			t.Errorf("%s: Run does not take the gate", leaf.Path())
		}
		for _, level := range leaf.AllFlags(false) {
			for _, f := range level {
				if f.PlaceHolder == "FILE" && (f.Group == nil || f.Group.Key == "Events") && !f.Tag.Has("kept") {
					t.Errorf("%s: the file of --%s is not kept with a request: add the tag kept", leaf.Path(), f.Name)
				}
			}
		}
	}
	if changes < 7 {
		t.Errorf("only %d commands change something", changes)
	}
}
