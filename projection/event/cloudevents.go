package event

import (
	"bytes"
	"encoding/base64"
	"errors"
)

// FormatCloudEvents is the name of the format for CloudEvents 1.0 in Kafka records.
const FormatCloudEvents = "cloudevents"

const (
	specVersion       = "1.0"
	nameData          = "data"
	contentTypeHeader = "content-type"
	attributePrefix   = "ce_" // prefix of the headers that contain attributes
)

var errAttributePath = errors.New("a CloudEvents attribute has a name without points; all else is below data")

// cloudEventsFormat reads CloudEvents as the Kafka protocol binding defines them. In structured
// mode the value is the whole event. In binary mode the attributes are headers, and the value is
// the data. The content type shows which mode a record has.
type cloudEventsFormat struct {
	structured, binary *decoder
	data               *shape // of the data in structured mode
}

func newCloudEvents(opts Options) (Format, error) {
	structured, err := newCloudEventsMode(opts, structuredPlace)
	if err != nil {
		return nil, err
	}
	binary, err := newCloudEventsMode(opts, binaryPlace)
	if err != nil {
		return nil, err
	}
	if id := &binary.places[FieldEventID]; id.header == attributePrefix+"id" {
		id.missing = "is missing, and header content-type does not say application/cloudevents+json either"
	}
	return &cloudEventsFormat{structured, binary, structured.shape.below(nameData)}, nil
}

// structuredPlace returns the place of a path in structured mode. The path must be the name of an
// attribute or begin with data.
func structuredPlace(path []string) (place, error) {
	if len(path) != 1 && !belowData(path) {
		return place{}, errAttributePath
	}
	return member(path...), nil
}

// binaryPlace returns the place of an attribute or of a path in the data, in binary mode.
func binaryPlace(path []string) (place, error) {
	if belowData(path) {
		p := member(path...)
		p.path = path[1:]
		return p, nil
	}
	if len(path) != 1 {
		return place{}, errAttributePath
	}
	header := attributePrefix + path[0]
	return place{kind: inHeader, header: header, name: nameHeader + header}, nil
}

func belowData(path []string) bool { return len(path) > 0 && path[0] == nameData }

// newCloudEventsMode returns the decoder of one mode. The function at returns the place of a path
// in this mode.
func newCloudEventsMode(opts Options, at func([]string) (place, error)) (*decoder, error) {
	l := &layout{data: []string{nameData}, at: at}
	if opts.Mapping.Envelope.isSet() {
		if !belowData(opts.Mapping.Envelope.Path) {
			return nil, &MappingError{FieldEnvelope, "must be in the CloudEvent's data: give it a path that begins with data"}
		}
		l.data = nil
	} else if data, moved := opts.Mapping.Fields[FieldData]; moved && !belowData(data.Path) {
		return nil, &MappingError{FieldData, "must be the CloudEvent's data, or below it"}
	}
	for field, attribute := range map[Field]string{
		FieldEventID: "id", FieldEventType: "type", FieldAccountID: "subject", FieldVersion: "sequence",
		FieldOccurredAt: "time", FieldCorrelationID: "correlationid",
		memberSpecVersion: "specversion", memberDataContentType: "datacontenttype", memberDataBase64: "data_base64",
	} {
		var err error
		if l.places[field], err = at([]string{attribute}); err != nil {
			return nil, err
		}
	}
	f, err := newDecoder(opts, l)
	if err != nil {
		return nil, err
	}
	f.number = numberPadded // leading zeros let sequence texts sort correctly
	return f, nil
}

// Decode implements Format.
func (f *cloudEventsFormat) Decode(m Message, d *Decoded) {
	var r reading
	r.message = m
	f.open(&r).decode(&r, d)
}

func (f *cloudEventsFormat) open(r *reading) *decoder {
	contentType, _ := firstHeader(r.message.Headers, contentTypeHeader)
	switch {
	case !IsStructuredCloudEvent(r.message.Headers):
		return f.readBinary(r, contentType)
	case r.message.Value == nil:
		return nil
	}
	f.structured.begin(r)
	if reason := eventFormatReason(contentType); reason != "" {
		r.unreadable(malformed(nameHeader+contentTypeHeader, reason))
	} else {
		f.structured.readDocument(r, WithoutSchemaID(r.message.Value), "")
	}
	f.structured.checkSpecVersion(r)
	f.readStructuredData(r)
	return f.structured
}

// readBinary reads the attributes from the headers and the data from the value. It returns nil
// for a tombstone. A null value is a tombstone, unless the event's type needs no data.
func (f *cloudEventsFormat) readBinary(r *reading, contentType []byte) *decoder {
	f.binary.begin(r)
	f.binary.checkSpecVersion(r)
	switch value := WithoutSchemaID(r.message.Value); {
	case value == nil && !f.needsNoData(r):
		f.binary.end(r)
		return nil
	case value == nil:
	case len(value) == 0: // some clients write this if there is no data
	case !isJSONType(contentType):
		r.unreadable(malformed(nameHeader+contentTypeHeader, reasonNotJSONType))
	default:
		f.binary.readDataDocument(r, value, nameData)
	}
	return f.binary
}

// needsNoData reports whether events of this type are valid without data.
func (f *cloudEventsFormat) needsNoData(r *reading) bool {
	var ev Event
	fault := f.binary.readType(r, &ev)
	return fault == nil && r.envelopeFault == nil && ev.Type.meaning().dataOptional
}

func (f *decoder) checkSpecVersion(r *reading) {
	_, text, fault := f.text(r, memberSpecVersion)
	if fault == nil && string(text) != specVersion {
		fault = malformed(f.places[memberSpecVersion].name, "is not "+specVersion)
	}
	r.envelopeFault = fault
}

const reasonNotJSONType = "does not say that data is JSON"

// cloudEventsType is the beginning of the content type in structured mode. The comparison ignores
// case.
const cloudEventsType = "application/cloudevents"

// IsStructuredCloudEvent reports whether the first content type of these headers is that of a
// CloudEvent in structured mode.
func IsStructuredCloudEvent(headers []Header) bool {
	contentType, _ := firstHeader(headers, contentTypeHeader)
	return len(contentType) >= len(cloudEventsType) &&
		bytes.EqualFold(contentType[:len(cloudEventsType)], []byte(cloudEventsType))
}

// eventFormatReason returns the reason why a structured event with this content type cannot be
// read, or "".
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

// isJSONType reports whether the content type says that the data is JSON. Data without a content
// type is read as JSON.
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

// mediaType returns a content type without its parameters.
func mediaType(contentType []byte) []byte {
	before, _, _ := bytes.Cut(contentType, []byte(";"))
	return bytes.TrimSpace(before)
}

// readStructuredData checks the content type of the data, and decodes data_base64.
func (f *cloudEventsFormat) readStructuredData(r *reading) {
	data, encoded := &r.found[FieldData], &r.found[memberDataBase64]
	places := &f.structured.places
	isEncoded := !encoded.absent() && !encoded.isNull()
	switch {
	case data.absent() && !isEncoded:
		return
	case !data.absent() && isEncoded:
		r.dataFault = malformed(places[memberDataBase64].name, "is there as well as data; there can be one of them only")
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
	if f.structured.envelope.isApart() {
		r.dataFault = malformed(name, "holds an envelope that the mapping declares; it is read from data only")
		return
	}
	r.dataFault = r.addMembers(name, document, f.data)
}
