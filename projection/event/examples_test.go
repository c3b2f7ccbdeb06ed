package event_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"projector/projection/event"
)

const exampleDir = "../../testdata/events"

// readExamples returns the example values by file name.
func readExamples(t testing.TB) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(exampleDir, "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no examples in %s: %v", exampleDir, err)
	}
	examples := make(map[string][]byte, len(paths))
	for _, path := range paths {
		value, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		examples[filepath.Base(path)] = value
	}
	return examples
}

func TestExamplesHaveTheirOutcome(t *testing.T) {
	examples := readExamples(t)
	table, err := os.ReadFile(filepath.Join(exampleDir, "outcomes.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	f := event.NewJSON(options)
	for line := range strings.Lines(string(table)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		value, ok := examples[fields[0]]
		if !ok {
			t.Errorf("%s is in the table and not in the folder", fields[0])
			continue
		}
		delete(examples, fields[0])
		if outcome, field := outcomeOf(decode(f, string(value))); outcome != fields[1] || field != fields[2] {
			t.Errorf("%s: %s %q, want %s %q", fields[0], outcome, field, fields[1], fields[2])
		}
	}
	for name := range examples {
		t.Errorf("%s has no outcome in the table", name)
	}
}

func outcomeOf(d event.Decoded) (outcome, field string) {
	switch {
	case d.Skip:
		return "skip", ""
	case d.Fault != nil:
		return string(d.Fault.Class), d.Fault.Field
	}
	return "event", ""
}
