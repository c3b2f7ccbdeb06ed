package event

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
)

// FormatDebezium is the name of the format of Debezium's outbox event router.
const FormatDebezium = "debezium-outbox"

// DebeziumOptions name the headers that the connector adds. An empty name is the default.
type DebeziumOptions struct {
	TypeHeader    string   // default eventType
	VersionHeader string   // default version
	TimeHeader    string   // default occurredAt
	TimeUnit      TimeUnit // of a time that is a number
}

// idHeader is the header that the event router always writes, with the outbox row's id.
const idHeader = "id"

// namePayload is the name of the value in faults. It is the outbox table's column.
const namePayload = "payload"

// debeziumFormat reads what Debezium's outbox event router writes. The value is the outbox row's
// payload, the key its aggregate id, and headers are the rest.
type debeziumFormat struct{ *decoder }

func newDebezium(opts Options) (Format, error) {
	o := opts.Debezium
	for field, flag := range map[Field]string{
		FieldEventType: o.TypeHeader, FieldVersion: o.VersionHeader, FieldOccurredAt: o.TimeHeader,
	} {
		if _, mapped := opts.Mapping.Fields[field]; mapped && flag != "" {
			return nil, &MappingError{field, "a flag names its header (" + flag + "); leave one of the two out"}
		}
	}
	if opts.Mapping.Time != RFC3339 && o.TimeUnit != RFC3339 {
		return nil, &MappingError{FieldOccurredAt, "a flag names its unit (--debezium-time-unit); leave one of the two out"}
	}
	var (
		kind   = cmp.Or(o.TypeHeader, "eventType")
		number = cmp.Or(o.VersionHeader, "version")
		at     = cmp.Or(o.TimeHeader, "occurredAt")
	)
	f, err := newDecoder(opts, &layout{
		places: [memberCount]place{
			FieldEventID: connectHeader(idHeader,
				"is missing; Debezium's EventRouter writes it from the column named by transforms.outbox.table.field.event.id"),
			FieldEventType: connectHeader(kind, missingHeader("type", kind, "--debezium-type-header")),
			FieldAccountID: {kind: inKey, quoted: true, name: nameKey, missing: "is null; " +
				"Debezium's EventRouter writes it from the column named by transforms.outbox.table.field.event.key"},
			FieldVersion:       connectHeader(number, missingHeader("version", number, "--debezium-version-header")),
			FieldOccurredAt:    connectHeader(at, missingHeader("occurred_at", at, "--debezium-time-header")),
			FieldCorrelationID: {quoted: true},
		},
		at: func(path []string) (place, error) {
			p := member(path...)
			p.name = strings.Join(append([]string{namePayload}, path...), ".")
			return p, nil
		},
		quoted: true,
	})
	if err != nil {
		return nil, err
	}
	f.numericTime, f.timeUnit = true, o.TimeUnit
	return &debeziumFormat{f}, nil
}

func connectHeader(name, missing string) place {
	return place{kind: inHeader, header: name, quoted: true, name: nameHeader + name, missing: missing}
}

// missingHeader names the connector's setting that adds a header from the usual column.
func missingHeader(column, header, flag string) string {
	return fmt.Sprintf("is missing; add %s:header:%s to transforms.outbox.table.fields.additional.placement of the connector,"+
		" or name another header with %s", column, header, flag)
}

// Decode implements Format. An event whose payload cannot be read is still identified, because
// its identity is in key and headers.
func (f *debeziumFormat) Decode(m Message, d *Decoded) {
	*d = Decoded{}
	if m.Value == nil {
		d.Tombstone = true
		return
	}
	r := &reading{jsonScanner: f.scanner(), message: m}
	f.readPayload(r)
	f.validate(r, d)
	f.end(r)
}

func (f *debeziumFormat) readPayload(r *reading) {
	document, fault := r.connectDocument(r.message.Value)
	if fault != nil {
		r.unreadable(fault, namePayload)
		return
	}
	f.readDataDocument(r, document, namePayload)
}

// connectPrefix is the begin of every value that Kafka Connect's JsonConverter writes with
// schemas.enable=true: {"schema":…,"payload":…}.
var connectPrefix = []byte(`{"schema":`)

var connectShape = &shape{self: memberNone, members: []shapeMember{
	newShapeMember("schema", memberSchema), newShapeMember("payload", memberPayload),
}}

func isConnectEnvelope(value []byte) bool { return bytes.HasPrefix(value, connectPrefix) }

// envelopeText returns the text, or the digits of a number, in the envelope of a header or a key.
func (r *reading) envelopeText(value []byte) (raw, text []byte, reason string) {
	var found members
	if err := r.scan(value, connectShape, &found); err != nil {
		return nil, nil, "begins like an envelope with a schema and is not well-formed JSON"
	}
	switch m := &found[memberPayload]; {
	case m.absent():
		return value, value, "" // it is no envelope
	case m.isNull():
		return nil, nil, reasonNull
	case m.isString():
		return m.raw, r.text(m), ""
	case m.isNumber():
		return m.raw, m.raw, ""
	}
	return nil, nil, "is an envelope with a schema whose payload is neither text nor a number"
}

// connectDocument returns the JSON document of an outbox row's payload: the value itself, or the
// text in it if the value is a JSON string or an envelope with a schema.
func (r *reading) connectDocument(value []byte) ([]byte, *Fault) {
	if isConnectEnvelope(value) {
		var found members
		if err := r.scan(value, connectShape, &found); err != nil {
			return nil, syntaxFault(value, err)
		}
		if !found[memberPayload].absent() {
			value = found[memberPayload].raw
		}
	}
	if trimmed := bytes.TrimLeft(value, whiteSpace); len(trimmed) == 0 || trimmed[0] != '"' {
		return value, nil
	}
	text, err := r.scanText(value)
	if err != nil {
		return nil, syntaxFault(value, err)
	}
	return bytes.Clone(text), nil // the event refers to parts of it
}
