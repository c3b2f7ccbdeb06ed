package cli

import (
	"slices"
	"testing"
)

// TestTheGrammarOfOneCommand shows that a command has the same subcommands and flags in the grammar
// that has only this command, and in the grammar of all commands.
func TestTheGrammarOfOneCommand(t *testing.T) {
	t.Parallel()
	all := parserOf(t)
	for _, command := range all.Model.Children {
		if slices.Contains(aboutRequests, command.Name) {
			continue // a request of any command can be read
		}
		one := parserOf(t, command.Name)
		if n := len(one.Model.Children); n != 1 {
			t.Errorf("%s: the grammar has %d commands", command.Name, n)
			continue
		}
		want, got := command.Leaves(false), one.Model.Children[0].Leaves(false)
		if len(want) != len(got) {
			t.Errorf("%s: %d leaves, want %d", command.Name, len(got), len(want))
			continue
		}
		for i := range want {
			if got[i].FullPath() != want[i].FullPath() || got[i].Summary() != want[i].Summary() || got[i].Detail != want[i].Detail ||
				len(got[i].AllFlags(false)) != len(want[i].AllFlags(false)) {
				t.Errorf("%s has another grammar than %s", got[i].FullPath(), want[i].FullPath())
			}
		}
	}
	for _, args := range [][]string{{"--help"}, {"nosuch"}, {"Run"}, {completionRequest, "run"}, {"requests", "show"}, {"approve"}, {"reject"}} {
		if n := len(parserOf(t, args...).Model.Children); n != len(all.Model.Children) {
			t.Errorf("%v: the grammar has %d commands", args, n)
		}
	}
}
