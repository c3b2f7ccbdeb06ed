package inspect

import (
	"bytes"
	"context"
	"fmt"

	"projector/internal/cli/events"
	"projector/internal/consumer"
	"projector/projection/event"
)

// advice finds other formats for records that the chosen format cannot read.
type advice struct {
	others []other
	faults int
	framed int  // records that begin like those with a schema in a registry
	shapes int  // JSON objects
	mapped bool // a mapping is used already
}

type other struct {
	name   string
	format event.Format
	reads  int
}

func newAdvice(ctx context.Context, flags *events.EventFlags, customTypes func() ([]string, error)) *advice {
	a := &advice{mapped: flags.Mapping.Given()}
	for _, name := range event.Formats() {
		as := *flags
		as.Format = name
		formats, err := as.Formats(customTypes)
		if name == flags.Format || err != nil { // the mapping is not possible with this format
			continue
		}
		if format, err := formats.Resolve(ctx, event.Message{}); err == nil { // these formats do not depend on the message
			a.others = append(a.others, other{name: name, format: format})
		}
	}
	return a
}

// count counts a record that the chosen format cannot read, and the other formats that can read it.
func (a *advice) count(d *decoded) {
	if d.Fault == nil {
		return
	}
	a.faults++
	value := event.WithoutSchemaID(d.record.Value)
	if len(value) > 5 && value[0] == 0 {
		a.framed++
	}
	if !a.mapped && bytes.HasPrefix(bytes.TrimSpace(value), []byte{'{'}) {
		a.shapes++
	}
	message := consumer.FromKafka(d.record).Message
	message.Entry = max(d.entry, 1)
	for i := range a.others {
		var read event.Decoded
		if a.others[i].format.Decode(message, &read); read.Fault == nil {
			a.others[i].reads++
		}
	}
}

// lines returns advice. It returns nil if a record is an event, or if no record has a fault.
func (a *advice) lines(read int) []string {
	if read > 0 || a.faults == 0 {
		return nil
	}
	var lines []string
	for _, o := range a.others {
		if o.reads > 0 {
			lines = append(lines, fmt.Sprintf("--format=%s reads %d of these %d", o.name, o.reads, a.faults))
		}
	}
	if a.framed > 0 {
		lines = append(lines, fmt.Sprintf("%d begin with a zero byte, as values do whose schema is in a registry: "+
			"--format=avro or protobuf, with --schema-registry-url", a.framed))
	}
	if a.shapes > 0 && len(lines) == 0 {
		lines = append(lines, fmt.Sprintf("%d are JSON objects: if the names or shapes are another producer's, inspect --suggest proposes a mapping", a.shapes))
	}
	return lines
}
