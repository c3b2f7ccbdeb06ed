package event

// valueKind says how a value is written.
type valueKind uint8

const (
	asJSON  valueKind = iota // as JSON text
	plain                    // as the text it is, without quotes
	instant                  // as microseconds since the Unix epoch, UTC
)

// value is what was found in a place of a document, unjudged. It is empty when the
// place is not there. What is no JSON and has no type of its own here is written as the
// JSON that is judged alike.
type value struct {
	raw  []byte
	kind valueKind
}

func (v *value) begins() byte {
	if v.kind == asJSON && len(v.raw) > 0 {
		return v.raw[0]
	}
	return 0
}

func (v *value) absent() bool   { return v.kind == asJSON && len(v.raw) == 0 }
func (v *value) isNull() bool   { return v.begins() == 'n' }
func (v *value) isString() bool { return v.begins() == '"' || v.kind == plain }
func (v *value) isObject() bool { return v.begins() == '{' }
func (v *value) isNumber() bool {
	c := v.begins()
	return c == '-' || c >= '0' && c <= '9'
}

// members holds what was found, by field.
type members [memberCount]value
