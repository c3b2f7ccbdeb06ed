package event

import (
	"bytes"
	"strconv"
)

// maxIDLen limits the bytes of an event id and an account id.
const maxIDLen = 200

// These reasons are used by several rules. They never contain a value.
const (
	reasonMissing    = "is missing"
	reasonNull       = "is null"
	reasonInArray    = "is missing: the path meets an array, and leads into objects only (for an array of events: envelope, entries)"
	reasonNotString  = "is not a string"
	reasonNotObject  = "is not an object"
	reasonNotInteger = "is not an integer"
	reasonNUL        = "contains a NUL character"
)

func malformed(field, reason string) *Fault {
	return &Fault{Class: MalformedPayload, Field: field, Reason: reason}
}

// idReason returns the reason why a text cannot be an event id or account id, or "".
func idReason(id []byte) string {
	switch {
	case len(id) == 0:
		return "is empty"
	case len(id) > maxIDLen:
		return "is longer than 200 bytes"
	case hasNUL(id):
		return reasonNUL
	}
	return ""
}

// hasNUL reports whether a text has a NUL, which PostgreSQL cannot store.
func hasNUL(text []byte) bool { return bytes.IndexByte(text, 0) >= 0 }

// numberRule says how a version may be written in a format.
type numberRule uint8

const (
	numberOnly   numberRule = iota // a JSON number in a document, plain digits elsewhere
	numberOrText                   // also a text in a document
	numberPadded                   // also a text in a document, and leading zeros
)

// notNumber returns the reason of a fault for a version that must be a number.
func (f *decoder) notNumber() string {
	if f.typed {
		return reasonNotInteger
	}
	return "is not a JSON number"
}

// notString returns the reason of a fault for a field that is not a text. The reason says what a
// mapping can declare.
func (f *decoder) notString(m *value, field Field) string {
	switch {
	case f.typed && field == FieldOccurredAt:
		return "is neither an RFC 3339 text nor a timestamp with a unit"
	case field == FieldVersion && m.isNumber(): // numbers are refused only if the mapping declares text
		return "is a number instead of a text, as the mapping declares with type: text"
	case field == FieldVersion && f.number != numberOnly:
		return "is neither an integer nor an integer as text"
	case m.isNumber() && field == FieldOccurredAt:
		return "is a number instead of an RFC 3339 text: a mapping can declare its unit"
	case m.isNumber() && field < FieldData:
		return "is a number instead of a string: a mapping can declare type: integer"
	}
	return reasonNotString
}

// isInteger reports whether a text is a JSON integer. Leading zeros are allowed only if rule is
// numberPadded.
func isInteger(text []byte, rule numberRule) bool {
	digits := bytes.TrimPrefix(text, []byte("-"))
	return isPlainDigits(digits) || rule == numberPadded && isDigits(digits)
}

// parseInteger converts a text for which isInteger returns true.
func parseInteger(text []byte) (n int64, fits bool) {
	const most = 18 // so many digits always fit
	if len(text) > most {
		n, err := strconv.ParseInt(string(text), 10, 64)
		return n, err == nil
	}
	negative := text[0] == '-'
	if negative {
		text = text[1:]
	}
	for _, c := range text {
		n = n*10 + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}

// parseVersion reads a version. The reason says which rule the text breaks, or is "".
func (f *decoder) parseVersion(text []byte) (version int64, reason string) {
	if !isInteger(text, f.number) {
		return 0, reasonNotInteger
	}
	version, fits := parseInteger(text)
	switch {
	case !fits:
		return 0, "does not fit a 64-bit integer"
	case version < f.firstVersion:
		return 0, f.belowFirst
	}
	return version, ""
}
