package event

import (
	"bytes"
	"cmp"
	"fmt"
)

// FormatDebezium is the name of the format of Debezium's outbox event router.
const FormatDebezium = "debezium-outbox"

// DebeziumOptions name the headers that the connector was told to add; an empty
// name is the default.
type DebeziumOptions struct {
	TypeHeader    string   // default eventType
	VersionHeader string   // default version
	TimeHeader    string   // default occurredAt
	TimeUnit      TimeUnit // what a time means that arrives as a number
}

// idHeader is the header the event router always writes, from the outbox table's id.
const idHeader = "id"

// debeziumFormat reads what Debezium's outbox event router writes: the outbox row's
// payload as value, its aggregate id as key, and the rest as headers.
type debeziumFormat struct{ *decoder }

func newDebezium(opts Options) (Format, error) {
	var (
		o      = opts.Debezium
		kind   = cmp.Or(o.TypeHeader, "eventType")
		number = cmp.Or(o.VersionHeader, "version")
		at     = cmp.Or(o.TimeHeader, "occurredAt")
	)
	payload := place{name: "payload"}
	inPayload := func(name string) place {
		p := member(name)
		p.name = payload.name + "." + p.name
		return p
	}
	f, err := newDecoder(opts, [memberCount]place{
		FieldEventID: connectHeader(idHeader,
			"is missing; Debezium's EventRouter writes it from the column named by transforms.outbox.table.field.event.id"),
		FieldEventType: connectHeader(kind, missingHeader("type", kind, "--debezium-type-header")),
		FieldAccountID: {kind: inKey, quoted: true, name: "key", missing: "is null; " +
			"Debezium's EventRouter writes it from the column named by transforms.outbox.table.field.event.key"},
		FieldVersion:       connectHeader(number, missingHeader("version", number, "--debezium-version-header")),
		FieldOccurredAt:    connectHeader(at, missingHeader("occurred_at", at, "--debezium-time-header")),
		FieldCorrelationID: {kind: nowhere, quoted: true},
		FieldData:          payload,
		FieldAmount:        inPayload("amount"),
		FieldCurrency:      inPayload("currency"),
	})
	if err != nil {
		return nil, err
	}
	f.epoch = o.TimeUnit
	return &debeziumFormat{f}, nil
}

// connectHeader is a place in a header that Kafka Connect wrote.
func connectHeader(name, missing string) place {
	return place{kind: inHeader, header: name, quoted: true, name: "header " + name, missing: missing}
}

// missingHeader names the setting that adds a header, with the column that usually
// holds it.
func missingHeader(column, header, flag string) string {
	return fmt.Sprintf("is missing; add %s:header:%s to transforms.outbox.table.fields.additional.placement of the connector,"+
		" or name another header with %s", column, header, flag)
}

// Decode implements Format. Identity stands in key and headers, so a payload that
// cannot be read leaves the event identified.
func (f *debeziumFormat) Decode(m Message, d *Decoded) {
	*d = Decoded{}
	if m.Value == nil {
		d.Tombstone = true
		return
	}
	r := f.begin(&m)
	f.readDocument(r)
	f.judge(r, d)
	f.end(r)
}

// readDocument finds the payload's members. A payload of null, which JsonConverter
// writes for a row without one, is no data, and no fault yet.
func (f *debeziumFormat) readDocument(r *reading) {
	document, fault := r.connectDocument(r.message.Value)
	if fault == nil {
		if trimmed := bytes.Trim(document, " \t\r\n"); string(trimmed) == "null" {
			r.found[FieldData] = trimmed
			return
		}
		err := r.scan(document, f.shape, &r.found)
		if err == nil {
			return
		}
		fault = syntaxFault(document, err)
	}
	r.found = members{}
	fault.Field = f.places[FieldData].name
	r.documentFault = fault
}
