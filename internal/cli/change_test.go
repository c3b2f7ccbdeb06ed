package cli

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"projector/internal/cli/change"
	"projector/internal/cli/flags"
)

// ofServer matches the flags about the connection to a server, or about a query to it.
var ofServer = regexp.MustCompile(`url$|query$|password|token|username|brokers|^tls|^sasl|registry`)

// unstored matches flags that concern only the running process. A request does not store these
// flags, and approve does not have them.
var unstored = regexp.MustCompile(`^(yes|help|memory-limit)$`)

// The function changing returns the commands that change something, by path.
func changing(t *testing.T) map[string]*kong.Node {
	t.Helper()
	found := map[string]*kong.Node{}
	for _, leaf := range parserOf(t).Model.Leaves(false) {
		if change.Of(leaf) != nil {
			found[leaf.Path()] = leaf
		}
	}
	return found
}

func flagsIn(leaf *kong.Node) (all []*kong.Flag) {
	for _, level := range leaf.AllFlags(false) {
		all = append(all, level...)
	}
	return all
}

// The map outside has the commands that do not use package change, each with the reason. Add a new
// command here only if it changes nothing or needs no second person.
var outside = map[string]string{
	"account show": "reads", "account statement": "reads", "audit list": "reads", "audit verify": "reads", "completion": "reads",
	"dlq export": "reads", "dlq list": "reads", "dlq show": "reads", "dlq summary": "reads", "gaps list": "reads", "inspect": "reads",
	"lag": "reads", "mapping check": "reads", "migrate status": "reads", "position list": "reads", "projection check": "reads",
	"requests list": "reads", "requests show": "reads", "verify": "reads", "version": "reads",
	"approve": "does a change that another login has requested", "reject": "changes the request alone",
	"migrate up": "sets the policy, as the owner", "run": "projects", "demo": "has servers of its own",
}

// TestEachCommandIsAChangeOrOutside shows that every command is either a change or listed in
// outside. Only a change has a plan that can be printed, hashed and approved.
func TestEachCommandIsAChangeOrOutside(t *testing.T) {
	changes, found := changing(t), map[string]bool{}
	for _, leaf := range parserOf(t).Model.Leaves(false) {
		path := leaf.Path()
		why := outside[path]
		if found[path] = true; (why == "") == (changes[path] == nil) {
			t.Errorf("%s: run by internal/cli/change is %t, and outside it %q", path, changes[path] != nil, why)
		}
	}
	for path := range outside {
		if !found[path] {
			t.Errorf("there is no command %s", path)
		}
	}
}

// TestWhateverHasYesIsAChange shows that every change except inbox prune has the flag --yes, and
// that no other command has this flag. A timer starts inbox prune.
func TestWhateverHasYesIsAChange(t *testing.T) {
	changes := changing(t)
	for _, leaf := range parserOf(t).Model.Leaves(false) {
		yes := false
		for _, f := range flagsIn(leaf) {
			yes = yes || f.Name == "yes"
		}
		if _, is := changes[leaf.Path()]; yes != (is && leaf.Path() != "inbox prune") {
			t.Errorf("%s: --yes is %t, a change is %t", leaf.Path(), yes, is)
		}
	}
	for _, path := range []string{
		"account skip", "account unskip", "dlq discard", "dlq replay", "gaps fetch", "inbox prune", "open", "pause", "position remove", "position set", "rebuild", "resume",
	} {
		if changes[path] == nil {
			t.Errorf("%s is no change", path)
		}
	}
}

// TestARequestHasEachOptionAndNoServer shows that a request stores each flag and argument of a
// change, except the flags in unstored and the flags that approve has too. Flags about a server
// must not be stored, because the approver sets them.
func TestARequestHasEachOptionAndNoServer(t *testing.T) {
	approves := map[string]bool{}
	for _, leaf := range parserOf(t).Model.Leaves(false) {
		if leaf.Name == "approve" {
			for _, f := range flagsIn(leaf) {
				approves[f.Name] = true
			}
		}
	}
	for path, leaf := range changing(t) {
		options := flagsIn(leaf)
		for _, f := range options {
			before := stored(t, leaf)
			marked := mark(f.Target)
			kept := stored(t, leaf) != before
			f.Target.SetZero()
			switch {
			case unstored.MatchString(f.Name):
				if kept {
					t.Errorf("%s: --%s is stored with a request", path, f.Name)
				}
			case !marked:
				t.Errorf("%s: --%s has a type that the test cannot set: %s", path, f.Name, f.Target.Type())
			case ofServer.MatchString(f.Name) && kept:
				t.Errorf(`%s: --%s is stored with a request: add the tag json:"-"`, path, f.Name)
			case !kept && !approves[f.Name]:
				t.Errorf("%s: --%s is not stored, and approve does not have it", path, f.Name)
			case f.PlaceHolder == "FILE" && kept && f.Target.Type() != reflect.TypeFor[flags.File]():
				t.Errorf("%s: the content of --%s is not stored: make it a flags.File", path, f.Name)
			}
		}
		for _, p := range leaf.Positional {
			before := stored(t, leaf)
			if mark(p.Target); stored(t, leaf) == before {
				t.Errorf("%s: %s is not stored", path, p.Name)
			}
		}
	}
}

func stored(t *testing.T, leaf *kong.Node) string {
	t.Helper()
	text, err := json.Marshal(change.Of(leaf))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// mark changes the value of a flag. It returns false if it does not support the type.
func mark(v reflect.Value) bool {
	if file, is := v.Addr().Interface().(*flags.File); is {
		*file = flags.FileNamed("mark" + file.String())
		return true
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return mark(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), v.Len()+1, v.Len()+1))
	case reflect.String:
		v.SetString(v.String() + "mark")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(v.Int() + 1)
	default:
		return false
	}
	return true
}

// TestAStoredChangeNamesNoFolder shows that a request stores file names without folders, because a
// folder exists only on the requester's machine.
func TestAStoredChangeNamesNoFolder(t *testing.T) {
	leaf := changing(t)["dlq replay"]
	for _, f := range flagsIn(leaf) {
		if file, is := f.Target.Addr().Interface().(*flags.File); is {
			*file = flags.FileNamed("/home/ann/" + f.Name)
		}
	}
	if text := stored(t, leaf); strings.Contains(text, "ann") || !strings.Contains(text, `"from-file"`) {
		t.Error(text)
	}
}
