package tracing

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"projector/errclass"
	"projector/projection"
	"projector/projection/event"
)

// mostLinks limits the links from the span of a flush to the spans of records. Every traced record
// still has a link to the span of its flush.
const mostLinks = 128

// Partition traces the records of one partition from the fold to their transaction. Only one
// goroutine may call its methods, except Pick.
type Partition struct {
	t          *Tracing
	attributes []attribute.KeyValue // attributes of each flush's span
	traced     []tracedRecord       // traced records that are folded but not durable, sorted by offset
	flush      trace.Span           // span of the current flush; nil if it has no traced record
	doing      trace.Span           // parent span of the next SQL statements; nil if they are not traced
}

// tracedRecord has the offset and the span of a traced record that is not durable yet.
type tracedRecord struct {
	offset int64
	span   trace.Span
}

// Pick appends to the slice picked those records that are traced.
func (*Partition) Pick(picked, records []*kgo.Record) []*kgo.Record {
	for _, r := range records {
		if r.Context != nil {
			picked = append(picked, r)
		}
	}
	return picked
}

// Folding begins the spans of the picked records, which are folded now. The queries for these
// records become children of the first record's span.
func (p *Partition) Folding(picked []*kgo.Record) {
	p.doing = nil
	for _, r := range picked {
		if !p.t.reserve() {
			return
		}
		_, span := p.t.consumed.WithProcessSpan(r)
		p.traced = append(p.traced, tracedRecord{r.Offset, span})
		if p.doing == nil {
			p.doing = span
		}
	}
}

// Flushing begins the span of a flush, if one of its records is traced. The flush has all records
// before the offset next.
func (p *Partition) Flushing(next int64) {
	p.doing = nil
	in := p.tracedBefore(next)
	if len(in) == 0 {
		return
	}
	links := make([]trace.Link, 0, min(len(in), mostLinks))
	for _, f := range in[:cap(links)] {
		links = append(links, trace.Link{SpanContext: f.span.SpanContext()})
	}
	_, p.flush = p.t.tracer.Start(context.Background(), p.t.cfg.Projection+" flush",
		trace.WithLinks(links...), trace.WithAttributes(p.attributes...))
	p.doing = p.flush
}

func (p *Partition) tracedBefore(next int64) []tracedRecord {
	n := 0
	for n < len(p.traced) && p.traced[n].offset < next {
		n++
	}
	return p.traced[:n]
}

// Context returns ctx with the parent span for the next SQL statements.
func (p *Partition) Context(ctx context.Context) context.Context {
	if p.doing == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, p.doing)
}

// Flushed ends the spans of the flush and of the records that are durable now.
func (p *Partition) Flushed(next int64, c *projection.Flushed) {
	if p.flush == nil {
		return
	}
	in := p.tracedBefore(next)
	link := trace.Link{SpanContext: p.flush.SpanContext()}
	classes := classesOf(in, c.DeadLetters)
	for _, f := range in {
		f.span.AddLink(link)
		if class, dead := classes[f.offset]; dead {
			f.span.SetAttributes(attribute.String("projector.class", string(class)))
			f.span.SetStatus(codes.Error, "dead-lettered as "+string(class))
		}
		p.t.end(f.span)
	}
	p.forget(len(in))
	p.flush.SetAttributes(
		attribute.Int("messaging.batch.message_count", c.Records),
		attribute.Int("projector.dead_letters", len(c.DeadLetters)),
		attribute.Int("projector.followed", len(in)),
	)
	p.flush.End()
	p.flush, p.doing = nil, nil
}

// classesOf returns the class of each record that is a dead letter, by its offset.
func classesOf(in []tracedRecord, letters []projection.DeadLetter) map[int64]event.Class {
	if len(in) == 0 || len(letters) == 0 {
		return nil
	}
	classes := make(map[int64]event.Class, len(in))
	first, last := in[0].offset, in[len(in)-1].offset
	for i := range letters {
		if at := letters[i].Record.Offset; at >= first && at <= last {
			classes[at] = letters[i].Class
		}
	}
	return classes
}

func (p *Partition) forget(n int) {
	kept := copy(p.traced, p.traced[n:])
	clear(p.traced[kept:])
	p.traced = p.traced[:kept]
}

// Dropped ends the spans of all records that are not durable. These records will be read again and
// then get new spans.
func (p *Partition) Dropped(reason error) {
	text := errclass.Safe(reason)
	for _, f := range p.traced {
		f.span.AddEvent("read again", trace.WithAttributes(attribute.String("reason", text)))
		p.t.end(f.span)
	}
	p.forget(len(p.traced))
	if p.flush != nil {
		p.flush.SetStatus(codes.Error, text)
		p.flush.End()
	}
	p.flush, p.doing = nil, nil
}
