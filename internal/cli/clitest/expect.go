package clitest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// parse reads JSON lines.
func (s *Stage) parse(args []string, out string) (all []map[string]any) {
	s.T.Helper()
	for line := range strings.Lines(out) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			s.T.Fatalf("%v: %v\n%s", args, err, line)
		}
		all = append(all, m)
	}
	return all
}

// Pick returns the named fields of each line as text. Lines are separated by commas.
func Pick(lines []map[string]any, fields ...string) string {
	var all []string
	for _, line := range lines {
		var some []string
		for _, f := range fields {
			text := fmt.Sprint(line[f])
			if line[f] == nil {
				text = "null"
			}
			some = append(some, text)
		}
		all = append(all, strings.Join(some, " "))
	}
	return strings.Join(all, ", ")
}

// Keys returns the names of the members of the JSON object in text, in their order.
func Keys(t *testing.T, text string) string {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	var names []string
	if _, err := decoder.Token(); err != nil {
		t.Fatal(err)
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name.(string))
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			t.Fatal(err)
		}
	}
	return strings.Join(names, " ")
}

// Equal fails the test if two texts differ.
func Equal(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Contains fails the test if a part is not in the text.
func Contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in\n%s", part, text)
		}
	}
}

// Statuses returns the account, version and status of each listed dead letter.
func Statuses(lines []map[string]any) string { return Pick(lines, strings.Fields(statusFields)...) }
