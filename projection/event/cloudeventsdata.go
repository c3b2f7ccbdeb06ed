package event

import (
	"bytes"
	"encoding/base64"
)

const reasonNotJSONType = "does not say that data is JSON"

// cloudEventsType begins the content type of structured mode, in any case.
const cloudEventsType = "application/cloudevents"

func isCloudEventsType(contentType []byte) bool {
	return len(contentType) >= len(cloudEventsType) &&
		bytes.EqualFold(contentType[:len(cloudEventsType)], []byte(cloudEventsType))
}

// eventFormatReason says why a structured event of that content type cannot be read,
// "" when it can.
func eventFormatReason(contentType []byte) string {
	const batch = "-batch"
	switch format := mediaType(contentType)[len(cloudEventsType):]; {
	case bytes.EqualFold(format, []byte("+json")):
		return ""
	case len(format) >= len(batch) && bytes.EqualFold(format[:len(batch)], []byte(batch)):
		return "says that the value is a batch of CloudEvents; a record must hold one event"
	}
	return "names a CloudEvents format that is not known; use application/cloudevents+json, or binary mode"
}

// isJSONType reports whether data of a content type is JSON; without one it is.
func isJSONType(contentType []byte) bool {
	if len(contentType) == 0 || string(contentType) == "application/json" {
		return true
	}
	_, subtype, ok := bytes.Cut(mediaType(contentType), []byte("/"))
	if !ok {
		return false
	}
	if at := bytes.LastIndexByte(subtype, '+'); at >= 0 {
		subtype = subtype[at+1:]
	}
	return bytes.EqualFold(subtype, []byte("json"))
}

// mediaType is a content type without its parameters.
func mediaType(contentType []byte) []byte {
	before, _, _ := bytes.Cut(contentType, []byte(";"))
	return bytes.TrimSpace(before)
}

// readStructuredData looks at what the structured form says of its data, and decodes
// data that is written as bytes.
func (f *cloudEventsFormat) readStructuredData(r *reading) {
	data, encoded := &r.found[FieldData], &r.found[memberDataBase64]
	places := &f.structured.places
	isEncoded := !encoded.absent() && !encoded.isNull()
	switch {
	case data.absent() && !isEncoded:
		return
	case !data.absent() && isEncoded:
		r.dataFault = malformed(places[memberDataBase64].name, "stands beside data, of which there can be one only")
		return
	}
	if contentType := &r.found[memberDataContentType]; !contentType.absent() && !contentType.isNull() {
		if !contentType.isString() || !isJSONType(r.text(contentType)) {
			r.dataFault = malformed(places[memberDataContentType].name, reasonNotJSONType)
			return
		}
	}
	if isEncoded {
		f.readBase64(r, encoded)
	}
}

// readBase64 reads data as the value of binary mode is read.
func (f *cloudEventsFormat) readBase64(r *reading, encoded *value) {
	name := f.structured.places[memberDataBase64].name
	if !encoded.isString() {
		r.dataFault = malformed(name, reasonNotString)
		return
	}
	document, err := base64.StdEncoding.AppendDecode(nil, r.text(encoded))
	if err != nil {
		r.dataFault = malformed(name, "is not Base64")
		return
	}
	if isNullDocument(document) {
		r.found[FieldData] = value{raw: jsonNull}
		return
	}
	var found members
	if err := r.scan(document, f.binary.shape, &found); err != nil {
		r.dataFault = syntaxFault(document, err)
		r.dataFault.Field = name
		return
	}
	for field := range found {
		if !found[field].absent() {
			r.found[field] = found[field]
		}
	}
}
