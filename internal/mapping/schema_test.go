package mapping_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"go.yaml.in/yaml/v3"

	"projector/internal/mapping"
	"projector/projection/event"
)

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

	types, money := []string{"ignored"}, []string{"ignored", "refused"}
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
	same("zero", meanings[1].Properties["zero"].Enum, []string{"ignored", "refused"})

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
		"lower", "upper", "dropped", "numeric", "alphabetic", "x", "!!binary eA==", "!odd x", "FundsCredited", "AccountOpened", "ignored", "refused", "2026-01-01", "{}", "[]", "{path: a}", "[{path: a}, b]", "[{constant: x}, {key: true}]",
	}
	members := []string{
		"path", "header", "key", "outer", "constant", "join", "with", "type", "unit", "scale", "zeros", "units", "nanos", "case", "code", "positive", "negative", "zero", "escaped", "entries", "optional", "record", "other",
	}
	tables := []string{"envelope", "fields", "eventTypes", "other"}
	read := 0
	try := func(text string) {
		var n yaml.Node
		if err := yaml.Unmarshal([]byte(text), &n); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		_, err := mapping.Parse([]byte(text))
		if allowed := allows(n.Content[0]); err == nil && !allowed {
			t.Errorf("%s: read, and the schema does not allow it", text)
		} else if err != nil && allowed && isStructural(text) {
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
	for _, member := range []string{"occurredAt: {unit: *a}", "amount: {unit: *a}", "amount: {type: *a}", "currency: {case: *a}"} {
		for _, value := range values {
			try("fields: {data: &a " + value + ", " + member + "}")
		}
	}
	if read < 300 {
		t.Errorf("only %d files were read", read)
	}
}

// The members of a currency depend on its code, and the schema says so.
func TestSchemaOfNumericCurrencies(t *testing.T) {
	for text, want := range map[string]bool{
		"{code: numeric}": true, "{code: numeric, type: integer, path: a}": true, "{code: alphabetic, case: lower}": true, "{constant: EUR}": true,
		"{type: integer}": false, "{type: integer, code: alphabetic}": false, "{constant: EUR, code: numeric}": false, "{code: numeric, case: lower}": false,
	} {
		text = "fields: {currency: " + text + "}"
		var n yaml.Node
		if err := yaml.Unmarshal([]byte(text), &n); err != nil {
			t.Fatal(err)
		}
		if _, err := mapping.Parse([]byte(text)); (err == nil) != want || allows(n.Content[0]) != want {
			t.Errorf("%s: parsed with %v, the schema allows it: %v; want %v", text, err, allows(n.Content[0]), want)
		}
	}
}

// isStructural reports whether a schema can detect the mistake in a file. A schema cannot detect an
// unknown currency, or that a member is missing because another member requires it.
func isStructural(text string) bool {
	for _, needs := range []string{"units", "nanos", "positive", "negative", "zero", "type: integer", "currency: {constant", "{}"} {
		if strings.Contains(text, needs) {
			return false
		}
	}
	return true
}

// schema contains the keywords of JSON Schema that mapping.schema.json uses.
type schema struct {
	Ref         string             `json:"$ref"`
	Defs        map[string]*schema `json:"$defs"`
	Type        any                `json:"type"` // a name, or a list of names
	Enum        []string           `json:"enum"`
	Const       any                `json:"const"`
	AnyOf       []*schema          `json:"anyOf"`
	Properties  map[string]*schema `json:"properties"`
	Additional  any                `json:"additionalProperties"` // false, or a schema
	Items       *schema            `json:"items"`
	Required    []string           `json:"required"`
	MinLength   int                `json:"minLength"`
	MaxLength   int                `json:"maxLength"`
	Minimum     *int               `json:"minimum"`
	Maximum     *int               `json:"maximum"`
	Title       string             `json:"title"`
	Description string             `json:"description"`
	Schema      string             `json:"$schema"`

	other *schema // for members that Properties does not name; nil if no such members are allowed
}

func readSchema() *schema {
	text, err := os.ReadFile("../../docs/mapping.schema.json")
	if err != nil {
		panic(err)
	}
	var s schema
	if err := json.Unmarshal(text, &s, json.RejectUnknownMembers(true)); err != nil {
		panic("mapping.schema.json: " + err.Error())
	}
	s.prepare()
	return &s
}

// prepare sets the field schema.other from the keyword additionalProperties. The value of this
// keyword is false or a schema.
func (s *schema) prepare() {
	if s == nil {
		return
	}
	if text, err := json.Marshal(s.Additional); err == nil && string(text) != "false" && string(text) != "null" {
		s.other = new(schema)
		if err := json.Unmarshal(text, s.other); err != nil {
			panic("mapping.schema.json: " + err.Error())
		}
	}
	for _, inner := range slices.Concat(s.AnyOf, []*schema{s.Items, s.other}) {
		inner.prepare()
	}
	for _, table := range []map[string]*schema{s.Properties, s.Defs} {
		for _, inner := range table {
			inner.prepare()
		}
	}
}

var theSchema = readSchema()

// allows reports whether the schema that editors use allows a document.
func allows(n *yaml.Node) bool { return theSchema.mismatch(theSchema, n) == nil }

// mismatch returns the node that the schema does not allow, or nil.
func (s *schema) mismatch(root *schema, n *yaml.Node) *yaml.Node {
	if name, is := strings.CutPrefix(s.Ref, "#/$defs/"); is {
		return root.Defs[name].mismatch(root, n)
	}
	switch {
	case len(s.AnyOf) > 0:
		return s.mismatchAny(root, n)
	case s.Enum != nil && (n.Kind != yaml.ScalarNode || !slices.Contains(s.Enum, n.Value)):
		return n
	case s.Const != nil && !isConst(n, s.Const):
		return n
	case s.Type != nil && !slices.ContainsFunc(typesOf(s.Type), func(name string) bool { return isOfType(n, name) }):
		return n
	}
	switch n.Kind {
	case yaml.ScalarNode:
		return s.mismatchScalar(n)
	case yaml.SequenceNode:
		for _, item := range n.Content {
			if s.Items == nil {
				break
			}
			if bad := s.Items.mismatch(root, item); bad != nil {
				return bad
			}
		}
	case yaml.MappingNode:
		return s.mismatchTable(root, n)
	case yaml.DocumentNode, yaml.AliasNode: // the value of a member is never one of these
	}
	return nil
}

// If no alternative fits, mismatchAny returns the mismatch of the last alternative that fits in
// part, because the position of this mismatch is more precise than the position of n.
func (s *schema) mismatchAny(root *schema, n *yaml.Node) *yaml.Node {
	furthest := n
	for _, one := range s.AnyOf {
		bad := one.mismatch(root, n)
		if bad == nil {
			return nil
		}
		if bad != n {
			furthest = bad
		}
	}
	return furthest
}

func (s *schema) mismatchScalar(n *yaml.Node) *yaml.Node {
	length := utf8.RuneCountInString(n.Value)
	if length < s.MinLength || s.MaxLength > 0 && length > s.MaxLength {
		return n
	}
	if s.Minimum != nil || s.Maximum != nil {
		number, err := strconv.Atoi(n.Value)
		if err != nil || s.Minimum != nil && number < *s.Minimum || s.Maximum != nil && number > *s.Maximum {
			return n
		}
	}
	return nil
}

func (s *schema) mismatchTable(root *schema, n *yaml.Node) *yaml.Node {
	var names []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		names = append(names, key.Value)
		of := s.Properties[key.Value]
		if of == nil {
			if of = s.other; of == nil {
				return key
			}
		}
		if bad := of.mismatch(root, value); bad != nil {
			return bad
		}
	}
	if slices.ContainsFunc(s.Required, func(name string) bool { return !slices.Contains(names, name) }) {
		return n
	}
	return nil
}

func typesOf(names any) []string {
	if name, is := names.(string); is {
		return []string{name}
	}
	var all []string
	list, _ := names.([]any)
	for _, name := range list {
		text, _ := name.(string)
		all = append(all, text)
	}
	return all
}

func isOfType(n *yaml.Node, name string) bool {
	switch name {
	case "object":
		return n.Kind == yaml.MappingNode
	case "array":
		return n.Kind == yaml.SequenceNode
	case "boolean":
		return n.Kind == yaml.ScalarNode && n.Tag == "!!bool"
	case "integer":
		return n.Kind == yaml.ScalarNode && n.Tag == "!!int"
	case "number":
		return n.Kind == yaml.ScalarNode && (n.Tag == "!!int" || n.Tag == "!!float")
	case "string": // a time in YAML is a string in JSON
		return n.Kind == yaml.ScalarNode && (n.Tag == "!!str" || n.Tag == "!!timestamp")
	}
	return false
}

func isConst(n *yaml.Node, want any) bool {
	switch want := want.(type) {
	case string:
		return n.Kind == yaml.ScalarNode && n.Tag == "!!str" && n.Value == want
	case bool:
		return n.Kind == yaml.ScalarNode && n.Tag == "!!bool" && n.Value == strconv.FormatBool(want)
	}
	return false
}
