package events_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"projector/internal/cli/clitest"
)

// check runs `mapping check` and returns its exit status and what it prints.
func check(t *testing.T, text string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bank.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	status = clitest.Execute(t.Context(), append([]string{"mapping", "check", path}, args...), &out, &errOut)
	return status, out.String(), errOut.String()
}

func TestMappingCheck(t *testing.T) {
	const good = "eventTypes: {b: ignored, a: {negative: FundsDebited}}\n" +
		"fields: {accountId: {join: [bank, no], with: /}, amount: {units: m.units, nanos: m.nanos}, data: \"\", occurredAt: {unit: ms}}\n"
	status, out, said := check(t, good)
	for _, want := range []string{"right", "bank and no  (joined)", "m.units and m.nanos", "(ms)", "b means ignored", "a means refused above zero, FundsDebited below, refused for zero"} {
		if status != 0 || !strings.Contains(out, want) {
			t.Errorf("%d, %s%s: no %q", status, out, said, want)
		}
	}
	_, out, _ = check(t, good, "--output=json")
	for _, want := range []string{`"format":"json"`, `"fields":[{"field":"eventId","from":"eventId","shape":"text"},`, `{"field":"version","from":"version","shape":"integer"}`, `"types":[{"name":"a",`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in %s", want, out)
		}
	}
	for _, format := range []string{"debezium-outbox", "avro", "protobuf"} {
		if status, _, said := check(t, good, "--format="+format); status != 0 {
			t.Errorf("%s: %s", format, said)
		}
	}
	for text, want := range map[string]string{
		"":                                      "line 1, column 1: the file is empty",
		"fields: {version: {heder: x}}":         "line 1, column 20: fields: version: \"heder\" is unknown",
		"fields:\n  version: id\n  eventId: id": "line 2, column 3: version: two fields are to be read from \"id\"",
		"a: 1\nb: 2":                            "2 mistakes",
	} {
		if status, out, said := check(t, text); status != 2 || out != "" || !strings.Contains(said, want) {
			t.Errorf("%q: %d, %s%s, want %s", text, status, out, said, want)
		}
	}
	if status, _, said := check(t, good, "--format=cloudevents"); status != 2 || !strings.Contains(said, "line 2, column ") {
		t.Errorf("%d, %s", status, said)
	}
	for unit, want := range map[string]string{
		"s": "begins at 1767225600.", "ms": "begins at 1767225600000.", "us": "begins at 1767225600000000.", "ns": "begins at 1767225600000000000.",
	} {
		if _, out, _ := check(t, "fields: {occurredAt: {path: at, unit: "+unit+"}}"); !strings.Contains(out, want) {
			t.Errorf("%s: no %q in %s", unit, want, out)
		}
	}
	const series = "envelope: {path: p, entries: lines}\nfields: {eventId: {outer: p.id}}\n"
	status, out, said = check(t, series)
	for _, want := range []string{"p.id and the index of the entry", "p.lines[].accountId", "note: each entry is an event"} {
		if status != 0 || !strings.Contains(out, want) {
			t.Errorf("%d, %s%s: no %q", status, out, said, want)
		}
	}
	var out2, errOut bytes.Buffer
	if status := clitest.Execute(t.Context(), []string{"mapping", "check", "/no/such/file"}, &out2, &errOut); status != 2 || !strings.Contains(errOut.String(), "<file>: open") {
		t.Errorf("%d, %s", status, errOut.String())
	}
}
