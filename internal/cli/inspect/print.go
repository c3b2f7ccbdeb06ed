package inspect

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/projection/event"
)

type recordDocument struct {
	Topic     string  `json:"topic"`
	Partition int32   `json:"partition"`
	Offset    int64   `json:"offset"`
	Entry     *int32  `json:"entry,omitempty"` // index of the entry in an array of events
	AccountID *string `json:"account_id"`
	Version   *int64  `json:"version"`
	EventID   *string `json:"event_id"`
	EventType *string `json:"event_type"`
	Class     *string `json:"class"` // class of the dead letter that it would be
	Message   *string `json:"message"`
	// Fields has the value of each field. It is set only if a mapping is used.
	Fields []fieldDocument `json:"fields,omitempty"`
}

type fieldDocument struct {
	Field   string  `json:"field"`
	From    string  `json:"from"`
	Value   *string `json:"value"`
	Class   *string `json:"class"`
	Message *string `json:"message"`
}

type payloadDocument struct {
	recordDocument
	output.Record
	*output.Payload
}

// printer prints each record and, without --output=json, a summary.
type printer struct {
	c      *Cmd
	std    *output.Streams
	rows   *output.Rows
	counts map[string]int
	why    []string // each reason once, with its class and its first record
	seen   map[string]bool
	advice *advice
	far    int // events whose time is far from that of their record
}

func (c *Cmd) printer(ctx context.Context, std *output.Streams) *printer {
	rows := c.Rows(std.Out, "ACCOUNT", output.Left("PLACE", 10), output.Left("ACCOUNT", 14), output.Right("VERSION", 7),
		output.Left("TYPE", 14).Optional(), output.Left("OUTCOME", 20))
	return &printer{c: c, std: std, rows: rows, counts: map[string]int{}, seen: map[string]bool{}, advice: newAdvice(ctx, &c.EventFlags, c.CustomTypes)}
}

const mostReasons = 10

func (p *printer) add(d *decoded) {
	outcome := d.outcome()
	p.counts[outcome]++
	p.advice.count(d)
	if d.isFar() {
		p.far++
	}
	reasons := d.faults()
	if len(reasons) == 0 && outcome != isEvent {
		reasons = []string{outcome + ": " + d.message()}
	}
	for _, reason := range reasons {
		if !p.seen[reason] && len(p.why) < mostReasons {
			p.seen[reason] = true
			p.why = append(p.why, fmt.Sprintf("%s (first at %s)", reason, placeOf(d)))
		}
	}
	if (p.c.ShowPayload || p.c.Mapping.Given()) && !p.c.JSON() {
		p.printFields(d)
	} else {
		p.rows.Add(p.document(d), placeOf(d), d.Event.AccountID, d.version(), d.Event.TypeName, d.outcome())
	}
}

func (p *printer) end() error {
	if err := p.rows.End(""); err != nil || p.c.JSON() || len(p.counts) == 0 {
		return err
	}
	p.std.Printf("\nread with --format=%s: %s\n", p.c.Format, countsText(p.counts))
	for _, why := range p.why {
		p.std.Printf("%s\n", output.Printable(why))
	}
	if p.far > 0 {
		p.std.Printf("%d events happened more than 10 years before or after their record was written: is the unit of occurredAt right?\n", p.far)
	}
	for _, line := range p.advice.lines(p.counts[isEvent]) {
		p.std.Printf("%s\n", line)
	}
	return nil
}

func countsText(counts map[string]int) string {
	var parts []string
	for _, name := range append([]string{isEvent, isIgnored, isTombstone}, flags.Texts(event.Classes())...) {
		if n := counts[name]; n > 0 {
			parts = append(parts, strconv.Itoa(n)+" "+name)
		}
	}
	return strings.Join(parts, ", ")
}

func (p *printer) document(d *decoded) any {
	record, ev := d.record, &d.Event
	doc := recordDocument{
		Topic: record.Topic, Partition: record.Partition, Offset: record.Offset,
		AccountID: output.OrNull(ev.AccountID), Version: d.version(), EventID: output.OrNull(ev.ID),
		EventType: output.OrNull(ev.TypeName), Message: output.OrNull(d.message()),
	}
	if d.entry > 0 {
		doc.Entry = new(d.entry - 1)
	}
	if d.Fault != nil {
		doc.Class = output.OrNull(string(d.Fault.Class))
	}
	if p.c.Mapping.Given() {
		doc.Fields = d.fieldDocuments(p.c.ShowPayload)
	}
	if !p.c.ShowPayload {
		return doc
	}
	return payloadDocument{doc, output.RecordOf(record), output.PayloadOf(record)}
}

func placeOf(d *decoded) string {
	place := output.PlaceText(d.record.Partition, d.record.Offset)
	if d.entry > 0 {
		place += "[" + strconv.Itoa(int(d.entry)-1) + "]"
	}
	return place
}

// fieldDocuments returns the value or the fault of each field. Amounts are included only if the
// payload is shown too.
func (d *decoded) fieldDocuments(payload bool) []fieldDocument {
	docs := []fieldDocument{}
	for i := range d.fields {
		f := &d.fields[i]
		doc := fieldDocument{Field: f.Field, From: f.From, Value: output.OrNull(f.Value)}
		if f.Field == event.FieldAmount.String() && !payload {
			doc.Value = nil
		}
		if f.Fault != nil {
			doc.Value, doc.Class, doc.Message = nil, output.OrNull(string(f.Fault.Class)), output.OrNull(f.Fault.Reason)
		}
		docs = append(docs, doc)
	}
	return docs
}

// printFields prints a record field by field. With --show-payload it also prints key, headers and
// value.
func (p *printer) printFields(d *decoded) {
	field := func(name, text string) { p.std.Printf("  %-14s %s\n", output.Printable(name), output.Printable(text)) }
	p.std.Printf("record %s of %s\n", placeOf(d), output.TimeText(d.record.Timestamp))
	field("outcome", d.outcome())
	if why := d.message(); why != "" {
		field("why", why)
	}
	for i := range d.fields {
		f := &d.fields[i]
		field(f.Field, p.fieldText(d, f))
	}
	if p.c.ShowPayload {
		for _, h := range d.record.Headers {
			field("header "+h.Key, output.BytesText(h.Value))
		}
		field("key", output.BytesText(d.record.Key))
		field("value", output.BytesText(d.record.Value))
	}
}

func (p *printer) fieldText(d *decoded, f *event.FieldReading) string {
	text := f.Value
	switch {
	case f.Fault != nil:
		return string(f.Fault.Class) + ": " + f.Fault.Error()
	case f.Field == event.FieldAmount.String() && !p.c.ShowPayload:
		text = "read, masked (--show-payload)"
	case f.Field == event.FieldAmount.String():
		text += " " + d.Event.Currency.Code()
	}
	return text + "  (" + f.From + ")"
}
