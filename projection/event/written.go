package event

import "bytes"

// These are the reasons why a value is not written as the mapping declares.
const (
	reasonNotDeclaredInteger = "is not an integer, as the mapping declares"
	reasonNotDeclaredBoolean = "is not true or false, as the mapping declares"
	reasonJoined             = "is longer than 4095 bytes, put together"
	reasonSeparator          = "contains the separator that the mapping joins it with"
)

// textReason returns the reason why a text is not of the type w, or "".
func (w Written) textReason(text []byte) string {
	switch w {
	case WrittenInteger:
		if !isInteger(text, numberOnly) || string(text) == "-0" {
			return reasonNotDeclaredInteger
		}
	case WrittenBoolean:
		if string(text) != "true" && string(text) != "false" {
			return reasonNotDeclaredBoolean
		}
	case WrittenUsually, WrittenText, writtenNumber:
	}
	return ""
}

// writtenText returns the text of a value that is not a JSON string, or for which the mapping
// declares another type than text.
func (f *decoder) writtenText(r *reading, p *place, m *value, field Field) (raw, text []byte, fault *Fault) {
	if fault := f.noValue(r, p, m); fault != nil {
		return nil, nil, fault
	}
	if text, fault = f.declaredText(p, m, field); fault != nil {
		return nil, nil, fault
	}
	if f.typed { // the next message overwrites the digits
		return nil, text, nil
	}
	return text, text, nil
}

// declaredText returns the JSON text of a number or a boolean, if the mapping declares this type.
func (f *decoder) declaredText(p *place, m *value, field Field) ([]byte, *Fault) {
	switch {
	case p.written == WrittenInteger && m.isNumber():
	case p.written == WrittenInteger:
		return nil, malformed(p.name, reasonNotDeclaredInteger)
	case p.written == writtenNumber && m.isNumber():
	case p.written == writtenNumber:
		return nil, malformed(p.name, reasonNotNumber)
	case p.written == WrittenBoolean && m.isBoolean():
	case p.written == WrittenBoolean:
		return nil, malformed(p.name, reasonNotDeclaredBoolean)
	default:
		return nil, malformed(p.name, f.notString(m, field))
	}
	if reason := p.written.textReason(m.raw); reason != "" {
		return nil, malformed(p.name, reason)
	}
	return m.raw, nil
}

// innerText reads a value from the JSON in a header or the key.
func (f *decoder) innerText(r *reading, p *place, document []byte, field Field) (raw, text []byte, fault *Fault) {
	var found members
	if err := r.scan(document, p.inner, &found); err != nil {
		return nil, nil, syntaxFault(p.name, document, err)
	}
	m := &found[memberPart]
	switch {
	case m.absent():
		return nil, nil, p.missingValue(m)
	case m.isNull():
		return nil, nil, malformed(p.name, reasonNull)
	case m.isString() && (p.written == WrittenText || p.digits):
		return m.raw, r.text(m), nil
	}
	text, fault = f.declaredText(p, m, field)
	return text, text, fault
}

// joinedText returns the texts of the parts, joined with the separator.
func (f *decoder) joinedText(r *reading, p *place, field Field) (raw, text []byte, fault *Fault) {
	start := r.beginJoined()
	whole := r.joined
	for i := range p.parts {
		if i > 0 {
			whole = append(whole, p.between)
		}
		part := &p.parts[i]
		_, text, fault := f.textAt(r, part, field)
		switch {
		case fault != nil && r.dataFault != nil && part.kind == inDocument && belowData(part.path):
			return nil, nil, r.dataFault // the part is not missing, its data cannot be read
		case fault != nil && part.optional && part.isAbsent(fault):
		case fault != nil:
			return nil, nil, fault
		case len(text) == 0:
			return nil, nil, malformed(part.name, "is empty")
		case len(whole)-start+len(text) >= joinedBytes:
			return nil, nil, malformed(p.name, reasonJoined)
		case i < len(p.parts)-1 && bytes.IndexByte(text, p.between) >= 0:
			return nil, nil, malformed(part.name, reasonSeparator)
		}
		whole = append(whole, text...)
	}
	r.joined = whole
	whole = whole[start:len(whole):len(whole)]
	return whole, whole, nil
}

// beginJoined returns the offset in s.joined at which the next joined text begins. Texts in
// s.joined are never overwritten, so events can refer to them. Copying each text took a tenth of
// the decoding time.
func (s *jsonScanner) beginJoined() int {
	const enough = maxIDLen + 1
	if cap(s.joined)-len(s.joined) < enough {
		s.joined = make([]byte, 0, joinedBytes)
	}
	return len(s.joined)
}

// joinedBytes is the size of a buffer for joined texts, which are all shorter. Without this limit, a
// thousand entries of a message could each have a copy of a long text around them.
const joinedBytes = 4 << 10
