package event

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
)

// FormatDebezium is the name of the format for Debezium's outbox event router.
const FormatDebezium = "debezium-outbox"

// DebeziumOptions contains the names of the headers that the connector adds. If a name is empty,
// the default is used.
type DebeziumOptions struct {
	TypeHeader    string   // default eventType
	VersionHeader string   // default version
	TimeHeader    string   // default occurredAt
	TimeUnit      TimeUnit // for a time that is a number
}

// idHeader is the header that the event router always writes, with the outbox row's id.
const idHeader = "id"

// namePayload is the name of the record's value in faults. It is also the name of the column in the
// outbox table.
const namePayload = "payload"

// debeziumFormat reads the records that Debezium's outbox event router writes. The value is the
// payload of the outbox row, which is the event's data. The key is the aggregate id. The event id,
// the type, the version and the time are headers.
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

// missingHeader returns the text about a missing header. It says how the connector adds the header
// from the usual column.
func missingHeader(column, header, flag string) string {
	return fmt.Sprintf("is missing; add %s:header:%s to transforms.outbox.table.fields.additional.placement of the connector,"+
		" or name another header with %s", column, header, flag)
}

// Decode implements Format. Without a mapping, the ids and the version are in the key and the
// headers. An event is then identified even if its payload cannot be read.
func (f *debeziumFormat) Decode(m Message, d *Decoded) {
	var r reading
	r.message = m
	f.open(&r).decode(&r, d)
}

func (f *debeziumFormat) open(r *reading) *decoder {
	if r.message.Value == nil {
		return nil
	}
	f.begin(r)
	if document, fault := r.connectDocument(WithoutSchemaID(r.message.Value)); fault != nil {
		r.unreadable(fault)
	} else {
		f.readDataDocument(r, document, namePayload)
	}
	return f.decoder
}

// connectPrefix is the beginning of every value that Kafka Connect's JsonConverter writes with
// schemas.enable=true: {"schema":…,"payload":…}.
var connectPrefix = []byte(`{"schema":`)

var connectShape = &shape{self: memberNone, record: memberNone, members: []shapeMember{
	newShapeMember("schema", memberSchema), newShapeMember("payload", memberPayload),
}}

func isConnectEnvelope(value []byte) bool { return bytes.HasPrefix(value, connectPrefix) }

// envelopeText returns the payload of a header or a key in Kafka Connect's envelope. The payload
// must be a text or a number.
func (r *reading) envelopeText(value []byte) (raw, text []byte, reason string) {
	var found members
	if err := r.scan(value, connectShape, &found); err != nil {
		return nil, nil, "begins like an envelope with a schema and is not well-formed JSON"
	}
	switch m := &found[memberPayload]; {
	case m.absent():
		return value, value, "" // the value is not an envelope
	case m.isNull():
		return nil, nil, reasonNull
	case m.isString():
		return m.raw, r.text(m), ""
	case m.isNumber():
		return m.raw, m.raw, ""
	}
	return nil, nil, "is an envelope with a schema whose payload is neither text nor a number"
}

// connectDocument returns the JSON document in an outbox row's payload. This is the value itself,
// or the text inside it if the value is a JSON string or an envelope with a schema.
func (r *reading) connectDocument(value []byte) ([]byte, *Fault) {
	if isConnectEnvelope(value) {
		var found members
		if err := r.scan(value, connectShape, &found); err != nil {
			return nil, syntaxFault(namePayload, value, err)
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
		return nil, syntaxFault(namePayload, value, err)
	}
	return bytes.Clone(text), nil // a copy, because the event refers to parts of it
}
