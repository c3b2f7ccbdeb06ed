package cli

import (
	"reflect"
	"regexp"
	"slices"
	"testing"

	"projector/internal/cli/change"
	"projector/internal/cli/foureyes"
	"projector/internal/cli/parse"
)

// ofServer are names of flags that say how a server is reached, or what it is asked.
var ofServer = regexp.MustCompile(`url$|query$|password|token|username|brokers`)

// approving are the flags of approve.
func approving(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, leaf := range parserOf(t).Model.Leaves(false) {
		for _, level := range leaf.AllFlags(false) {
			for _, f := range level {
				if leaf.Name == "approve" {
					names[f.Name] = true
				}
			}
		}
	}
	return names
}

// TestWhateverChangesSomethingPassesTheGate: a command that is told --yes asks whether
// somebody else has to agree, and a file it reads is kept for him.
func TestWhateverChangesSomethingPassesTheGate(t *testing.T) {
	gate, changes := reflect.TypeFor[*foureyes.Gate](), 0
	approves := approving(t)
	for _, leaf := range parserOf(t).Model.Leaves(false) {
		if !foureyes.Changes(leaf) {
			continue
		}
		changes++
		if leaf.Target.Type().PkgPath() != reflect.TypeFor[change.On]().PkgPath() {
			t.Errorf("%s has a --yes of its own: make it a change.Command", leaf.Path())
		}
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
				file, server := f.PlaceHolder == "FILE", ofServer.MatchString(f.Name)
				switch local := foureyes.Local(f); {
				case server && !local:
					t.Errorf("%s: --%s is kept with a request: add the tag local", leaf.Path(), f.Name)
				case file && !local && !foureyes.Kept(f):
					t.Errorf("%s: the file of --%s is not kept with a request: add the tag kept", leaf.Path(), f.Name)
				case foureyes.Kept(f) && f.Target.Type() != reflect.TypeFor[parse.File]():
					t.Errorf("%s: --%s is kept with a request, which holds files in memory: make it a parse.File", leaf.Path(), f.Name)
				case server && !approves[f.Name]:
					t.Errorf("approve has no --%s, which %s needs: add it to what it shares with requests show", f.Name, leaf.Path())
				}
			}
		}
	}
	if changes < 7 {
		t.Errorf("only %d commands change something", changes)
	}
}
