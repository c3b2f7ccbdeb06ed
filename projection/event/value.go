package event

// valueKind says what stands in a place of a document.
type valueKind uint8

const (
	nothing  valueKind = iota // the place is not there
	null                      // there is nothing in it
	quoted                    // a JSON string, with quotes and escapes
	plain                     // text as it is
	number                    // a number, as it is written
	integer                   // a number that is known to be an integer
	fraction                  // a number that may have gone through a float
	instant                   // a time
	object                    // what holds other values by name
	anything                  // what no field can be
)

// value is what was found in a place of a document, unjudged. The zero value is
// nothing.
type value struct {
	raw  []byte // of a quoted, plain, number and JSON object: a part of the document, or digits
	n    int64  // of an integer; of an instant: microseconds since the Unix epoch, UTC
	kind valueKind
}

func (v *value) absent() bool   { return v.kind == nothing }
func (v *value) isNull() bool   { return v.kind == null }
func (v *value) isString() bool { return v.kind == quoted || v.kind == plain }
func (v *value) isObject() bool { return v.kind == object }
func (v *value) isNumber() bool { return v.kind >= number && v.kind <= fraction }

// members holds what was found, by field.
type members [memberCount]value

// jsonValue tells what a JSON value is from its first byte; the grammar was checked.
func jsonValue(raw []byte) value {
	v := value{raw: raw, kind: anything}
	switch c := raw[0]; {
	case c == '"':
		v.kind = quoted
	case c == '{':
		v.kind = object
	case c == '-' || c >= '0' && c <= '9':
		v.kind = number
	case c == 'n':
		v.kind = null
	}
	return v
}
