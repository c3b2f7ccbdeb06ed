package cli

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"projector/internal/cli/exit"
)

// TestEachCommandHasExamples shows that each command has a page with examples, that there are no
// other pages, and that the program accepts each example.
func TestEachCommandHasExamples(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("dead-letters.jsonl", nil, 0o600); err != nil { // kong checks that the file exists
		t.Fatal(err)
	}
	var paths []string
	manual := readManual(t)
	for _, leaf := range parserOf(t).Model.Leaves(false) {
		paths = append(paths, leaf.Path())
		page := manual[leaf.Path()]
		if page.about == "" || len(page.examples) < 2 {
			t.Errorf("%s: its page lacks what it is about, or examples", leaf.Path())
		}
		for _, e := range page.examples {
			args := argumentsOf(t, e.line)
			if parsed, err := parserOf(t, args...).Parse(args); err != nil {
				t.Errorf("%s: %v", e.line, err)
			} else if !strings.HasPrefix(parsed.Command(), leaf.Path()) {
				t.Errorf("%s is on the page of %s", e.line, leaf.Path())
			}
		}
	}
	for path := range manual {
		if !slices.Contains(paths, path) {
			t.Errorf("there is a page for %q, which is no command", path)
		}
	}
}

// manualPage is a page of the manual.
type manualPage struct {
	about, status string
	examples      []example
}

// example is a command line and its purpose.
type example struct{ purpose, line string }

// readManual reads the pages of the manual. It fails the test if a page does not have the form that
// manual.txt must have.
func readManual(t *testing.T) map[string]manualPage {
	t.Helper()
	pages := map[string]manualPage{}
	for path, text := range manualPages() {
		prose, examples, found := strings.Cut(text, "\n\nExamples:\n\n")
		if !found {
			t.Fatalf("the page of %q has no examples", path)
		}
		var page manualPage
		page.about, page.status, _ = strings.Cut(prose, "\n\nExit status: ")
		for part := range strings.SplitSeq(examples, "\n\n") {
			purpose, line, found := strings.Cut(part, "\n")
			if !found || !strings.HasPrefix(purpose, "    # ") || !strings.HasPrefix(line, "    ") || strings.Contains(line, "\n") {
				t.Fatalf("the page of %q: not a purpose and a line: %q", path, part)
			}
			page.examples = append(page.examples, example{strings.TrimPrefix(purpose, "    # "), strings.TrimSpace(line)})
		}
		pages[path] = page
	}
	return pages
}

// argumentsOf returns the arguments of the program in a line for a shell.
func argumentsOf(t *testing.T, line string) []string {
	t.Helper()
	_, line, found := strings.Cut(line, "projector ")
	if !found {
		line = ""
	}
	var (
		args   []string
		word   strings.Builder
		quoted bool
	)
	for _, r := range line + " " {
		switch {
		case r == '\'':
			quoted = !quoted
		case quoted:
			word.WriteRune(r)
		case strings.ContainsRune("|>)", r):
			if word.Len() > 0 {
				args = append(args, word.String())
			}
			return args
		case r != ' ':
			word.WriteRune(r)
		case word.Len() > 0:
			args = append(args, word.String())
			word.Reset()
		}
	}
	if quoted || len(args) == 0 && strings.TrimSpace(line) != "" {
		t.Fatalf("%s: cannot be taken apart", line)
	}
	return args
}

func TestHelpShowsExamples(t *testing.T) {
	for path, page := range readManual(t) {
		var out, errOut bytes.Buffer
		status := execute(t.Context(), append(strings.Fields(path), "--help"), &out, &errOut)
		if status != exit.OK || errOut.Len() > 0 {
			t.Errorf("%s --help: exit status %d, %s", path, status, errOut.String())
		}
		for _, e := range page.examples {
			if !strings.Contains(out.String(), "    "+e.line+"\n") {
				t.Errorf("%s --help does not show %q:\n%s", path, e.line, out.String())
			}
		}
	}
}
