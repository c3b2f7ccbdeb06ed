package cli

import (
	"fmt"
	"reflect"
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

// TestNumbersAreDecimal reads numbers with zeros before them. The name of a log segment is an offset of
// that form, 00000000000000000010.log, and kong would read it as octal.
func TestNumbersAreDecimal(t *testing.T) {
	t.Setenv("PARK_LIMIT", "010")
	for _, test := range []struct {
		args []string
		want map[string]string
	}{
		{[]string{"position", "set", "--partition=010", "--offset=00000000000000000010", "--reason=x"}, map[string]string{"partition": "10", "offset": "10"}},
		{[]string{"dlq", "list", "--partition=010", "--dlq-offset=010,011"}, map[string]string{"partition": "[10]", "dlq-offset": "[10 11]"}},
		{[]string{"account", "skip", "a", "--version", "010", "--reason=x"}, map[string]string{"version": "10"}},
		{[]string{"run", "--first-version=010"}, map[string]string{"first-version": "10", "park-limit": "10"}},
	} {
		parsed, err := parserOf(t, test.args...).Parse(test.args)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, f := range parsed.Flags() {
			if want, is := test.want[f.Name]; is {
				if got := fmt.Sprint(reflect.Indirect(f.Target)); got != want {
					t.Errorf("%v: --%s is %s", test.args, f.Name, got)
				}
			}
		}
	}
}
