package mapping

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"

	"projector/projection/event"
)

func TestPublishedSchemaIsOurs(t *testing.T) {
	published, err := os.ReadFile("../../docs/mapping.schema.json")
	if err != nil || !bytes.Equal(published, schemaText) {
		t.Errorf("docs/mapping.schema.json is not internal/mapping/mapping.schema.json: copy it (%v)", err)
	}
}

// The names in the schema must be the same as the names in the Go types.
func TestSchemaNamesWhatTheTypesHave(t *testing.T) {
	same := func(what string, got, want []string) {
		t.Helper()
		if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			t.Errorf("%s: the schema has %v, the program %v", what, got, want)
		}
	}
	fields := theSchema.Properties["fields"]
	var names, wanted []string
	for name := range fields.Properties {
		names = append(names, name)
	}
	for _, field := range event.Fields() {
		wanted = append(wanted, field.String())
	}
	same("fields", names, wanted)

	types, money := []string{ignored}, []string{ignored, refused}
	for _, kind := range event.NamedTypes() {
		types = append(types, kind.Name())
		if kind.MovesMoney() {
			money = append(money, kind.Name())
		}
	}
	meanings := theSchema.Properties["eventTypes"].other.AnyOf
	same("eventTypes", meanings[0].Enum, types)
	same("positive", meanings[1].Properties["positive"].Enum, money)
	same("negative", meanings[1].Properties["negative"].Enum, money)
	same("zero", meanings[1].Properties["zero"].Enum, []string{ignored, refused})

	table := func(field string) *schema { return fields.Properties[field].AnyOf[1] }
	units := []string{}
	for unit := event.RFC3339; unit <= event.Date; unit++ {
		units = append(units, unit.String())
	}
	same("unit", table("occurredAt").Properties["unit"].Enum, units)
	written := []string{}
	for w := event.WrittenText; w <= event.WrittenBoolean; w++ {
		written = append(written, w.String())
	}
	same("type", table("eventType").Properties["type"].Enum, written)
	if scale := table("amount").Properties["scale"]; *scale.Maximum != event.MostScale {
		t.Errorf("scale up to %d", *scale.Maximum)
	}
}

// The schema must accept every file that Parse accepts, and refuse a file whose structure is wrong.
// The test tries each member of each table with many values.
func TestSchemaAllowsWhatIsRead(t *testing.T) {
	values := []string{
		"a.b", "[a, b.c]", "''", "true", "false", "7", "19", "-1", "1.5", "null", "minor", "major", "ms", "date", "text", "number", "integer", "boolean",
		"lower", "upper", "x", "FundsCredited", "AccountOpened", "ignored", "refused", "2026-01-01", "{}", "[]", "{path: a}", "[{path: a}, b]", "[{constant: x}, {key: true}]",
	}
	members := []string{
		"path", "header", "key", "outer", "constant", "join", "with", "type", "unit", "scale", "units", "nanos", "case", "positive", "negative", "zero", "escaped", "entries", "optional", "other",
	}
	tables := []string{"envelope", "fields", "eventTypes", "other"}
	read := 0
	try := func(text string) {
		var n yaml.Node
		if err := yaml.Unmarshal([]byte(text), &n); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		_, err := Parse([]byte(text))
		if bad := checkSchema(n.Content[0]); err == nil && bad != nil {
			t.Errorf("%s: read, and %v", text, bad)
		} else if err != nil && bad == nil && isStructural(text) {
			t.Errorf("%s: the schema allows it, and %v", text, err)
		}
		if err == nil {
			read++
		}
	}
	for _, table := range tables {
		for _, value := range values {
			try(table + ": " + value)
			for _, member := range append(members, "eventId", "eventType", "accountId", "version", "occurredAt", "correlationId", "data", "amount", "currency") {
				try(table + ": {" + member + ": " + value + "}")
				for _, inner := range members {
					try(table + ": {" + member + ": {" + inner + ": " + value + "}}")
				}
			}
		}
	}
	if read < 300 {
		t.Errorf("only %d files were read", read)
	}
}

// isStructural reports whether a schema can detect the mistake in a file. A schema cannot detect an
// unknown currency, or that a member is missing because another member requires it.
func isStructural(text string) bool {
	for _, needs := range []string{"units", "nanos", "positive", "negative", "zero", "type: integer", "currency: {constant", "{}"} {
		if bytes.Contains([]byte(text), []byte(needs)) {
			return false
		}
	}
	return true
}
