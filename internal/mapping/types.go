package mapping

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"projector/projection/event"
)

const (
	ignored = "ignored" // the event only advances the version
	refused = "refused" // the event is dead-lettered
)

func (m *Mapping) addType(key, value *yaml.Node) error {
	if value.Kind == yaml.MappingNode {
		return m.addSigned(key, value)
	}
	kind := event.TypeNamed(value.Value)
	if value.Value == ignored {
		kind = event.Ignorable
	}
	if value.Kind != yaml.ScalarNode || kind == event.Unknown {
		return errorAt(value, "eventTypes: %s: must be %s, %s or a table of signs", key.Value, typeList(), ignored)
	}
	m.Types[key.Value] = kind
	return nil
}

// addSigned reads the meanings of a type that depend on the sign of the amount.
func (m *Mapping) addSigned(key, table *yaml.Node) error {
	name := "eventTypes: " + key.Value
	var signed event.SignedType
	err := eachMember(table, name, func(sign, value *yaml.Node) error {
		var of *event.Type
		switch sign.Value {
		case "positive":
			of = &signed.Positive
		case "negative":
			of = &signed.Negative
		case "zero":
			of = &signed.Zero
		default:
			return errorAt(sign, "%s: %q is unknown; use positive, negative and zero", name, sign.Value)
		}
		kind := event.TypeNamed(value.Value)
		switch {
		case value.Kind == yaml.ScalarNode && value.Value == refused:
		case value.Kind == yaml.ScalarNode && value.Value == ignored:
			*of = event.Ignorable
		case value.Kind == yaml.ScalarNode && kind.MovesMoney() && sign.Value != "zero":
			*of = kind
		case sign.Value == "zero":
			return errorAt(value, "%s: zero: must be %s or %s", name, ignored, refused)
		default:
			return errorAt(value, "%s: %s: must be %s, %s or %s", name, sign.Value, typesWithAmount(true), ignored, refused)
		}
		return nil
	})
	if err == nil && !signed.Positive.MovesMoney() && !signed.Negative.MovesMoney() {
		err = errorAt(key, "%s: positive or negative must be %s", name, typesWithAmount(true))
	}
	if m.Signed == nil {
		m.Signed = map[string]event.SignedType{}
	}
	m.Signed[key.Value] = signed
	return err
}

func typeList() string { return listOf(event.NamedTypes(), event.Type.Name) }

// typesWithAmount lists the types that have an amount, or those that have none.
func typesWithAmount(has bool) string {
	types := slices.DeleteFunc(event.NamedTypes(), func(t event.Type) bool { return t.MovesMoney() != has })
	return listOf(types, event.Type.Name)
}

func listOf[T any](all []T, name func(T) string) string {
	names := make([]string, len(all))
	for i, one := range all {
		names[i] = name(one)
	}
	return strings.Join(names, ", ")
}
