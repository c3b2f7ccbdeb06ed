package mapping

import "go.yaml.in/yaml/v3"

func (m *Mapping) addEnvelope(key, value *yaml.Node) (err error) {
	name := "envelope: " + key.Value
	switch key.Value {
	case "path":
		m.Envelope.Path, err = readPath(name, value, false)
	case "entries":
		if m.Envelope.Entries, err = readPath(name, value, true); err == nil && m.Envelope.Entries == nil {
			m.Envelope.Entries = []string{} // the path of the envelope leads to the array
		}
	case "escaped":
		if value.Tag != "!!bool" || value.Value != "true" && value.Value != "false" {
			return errorAt(value, "%s: must be true or false", name)
		}
		m.Envelope.Escaped = value.Value == "true"
	default:
		return errorAt(key, "envelope: %q is unknown; use path, escaped and entries", key.Value)
	}
	return err
}
