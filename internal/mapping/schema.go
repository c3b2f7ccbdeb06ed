package mapping

import (
	_ "embed" // needed for go:embed
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"go.yaml.in/yaml/v3"
)

// schemaText is the JSON Schema of the file, for editors. docs/mapping.schema.json is a copy of it.
//
//go:embed mapping.schema.json
var schemaText []byte

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
	var s schema
	if err := json.Unmarshal(schemaText, &s, json.RejectUnknownMembers(true)); err != nil {
		panic("mapping: mapping.schema.json: " + err.Error())
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
			panic("mapping: mapping.schema.json: " + err.Error())
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

// checkSchema checks the file with the schema that editors use. Parse has better messages, so this
// check comes last and reports only mistakes that Parse does not find.
func checkSchema(n *yaml.Node) error {
	if bad := theSchema.mismatch(theSchema, n); bad != nil {
		return errorAt(bad, "%s: %q is not allowed here; docs/mapping.schema.json has what is", strings.Join(namesTo(n, bad), ": "), bad.Value)
	}
	return nil
}

// namesTo returns the names of the members that lead from n to a node below it. It returns nil if
// the node is not below n.
func namesTo(n, wanted *yaml.Node) []string {
	if n == wanted {
		return []string{}
	}
	for i, inner := range n.Content {
		names := namesTo(inner, wanted)
		switch isMember := n.Kind == yaml.MappingNode; {
		case names == nil:
		case isMember && i%2 == 1:
			return append([]string{n.Content[i-1].Value}, names...)
		default:
			return names
		}
	}
	return nil
}

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
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
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
