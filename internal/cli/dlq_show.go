package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/dlq"
	"projector/projection/event"
	"projector/readmodel"
)

type dlqShowCmd struct {
	Place       string `arg:"" name:"p/o" help:"Partition and offset in the DLQ topic, e.g. 3/1042."`
	ShowPayload bool   `help:"Show the value and amounts, which are masked otherwise."`
	dlqFlags
	outputFlags
}

// shownDocument is one dead letter in JSON with all it carries.
type shownDocument struct {
	letterDocument
	Headers     []headerDocument `json:"headers"`
	Key         *string          `json:"key"`
	KeyBase64   *string          `json:"key_base64,omitempty"`
	Value       *string          `json:"value,omitempty"`
	ValueBase64 *string          `json:"value_base64,omitempty"`
}

type headerDocument struct {
	Key         string  `json:"key"`
	Value       *string `json:"value"`
	ValueBase64 *string `json:"value_base64,omitempty"`
}

// Run shows one dead letter.
func (c *dlqShowCmd) Run(ctx context.Context, std *streams) error {
	partition, offset, err := parsePlace(c.Place)
	if err != nil {
		return err
	}
	tools, err := c.open(ctx, std)
	if err != nil {
		return err
	}
	defer tools.close()
	record, err := tools.reader.ReadAt(ctx, partition, offset)
	if errors.Is(err, dlq.ErrNoRecord) {
		return refusef("topic %s has no record at partition %d, offset %d", tools.topic, partition, offset)
	}
	if err != nil {
		return err
	}
	entry, err := dlq.Parse(record)
	if err != nil {
		return refusef("topic %s partition %d offset %d is no dead letter: %s", tools.topic, partition, offset, err.Error())
	}
	s := &scan{dlqTools: tools, payload: true}
	d, err := s.take(ctx, tools.topic, entry, false)
	if err != nil {
		return err
	}
	if own := kindNamed(entry.Projection); own != nil {
		tools.kind = own // it was named by its place, so it is shown whosoever it is
	}
	if err := tools.assess(ctx, tools.letters(0), []*deadLetter{d}); err != nil {
		return err
	}
	if c.json() {
		return printJSON(std.out, c.describe(record, d))
	}
	return c.print(ctx, std.out, tools, record, d)
}

func parsePlace(text string) (partition int32, offset int64, err error) {
	before, after, found := strings.Cut(text, "/")
	p, errPartition := strconv.ParseInt(before, 10, 32)
	offset, errOffset := strconv.ParseInt(after, 10, 64)
	if !found || errPartition != nil || errOffset != nil || p < 0 || offset < 0 {
		return 0, 0, usagef("%q: want partition/offset in the DLQ topic, e.g. 3/1042", text)
	}
	return int32(p), offset, nil
}

func (c *dlqShowCmd) describe(record *kgo.Record, d *deadLetter) shownDocument {
	doc := shownDocument{letterDocument: d.document(), Headers: []headerDocument{}}
	doc.Key, doc.KeyBase64 = dlq.TextOrBase64(record.Key)
	if c.ShowPayload {
		doc.Value, doc.ValueBase64 = dlq.TextOrBase64(record.Value)
	}
	for _, h := range record.Headers {
		out := headerDocument{Key: h.Key}
		out.Value, out.ValueBase64 = dlq.TextOrBase64(h.Value)
		doc.Headers = append(doc.Headers, out)
	}
	return doc
}

// print shows a dead letter to people.
func (c *dlqShowCmd) print(ctx context.Context, w io.Writer, tools *dlqTools, record *kgo.Record, d *deadLetter) error {
	out := bufio.NewWriter(w)
	field := func(name, text string) { _, _ = fmt.Fprintf(out, "  %-16s %s\n", printable(name), printable(text)) }
	e := &d.entry
	_, _ = fmt.Fprintf(out, "dead letter %s of %s\n", placeText(e.DLQPartition, e.DLQOffset), tools.topic)
	field("status", string(d.status))
	field("class", string(e.Class))
	field("why", e.Message)
	field("source", fmt.Sprintf("%s %s, record of %s", e.Topic, placeText(e.Partition, e.Offset), timeText(time.UnixMilli(e.Timestamp))))
	field("failed at", timeText(e.FailedAt))
	field("expected version", versionText(e.Expected))
	field("received version", versionText(e.Received))
	field("replays", strconv.Itoa(d.replays))
	c.printEvent(out, field, d)
	_, _ = fmt.Fprintln(out, "headers")
	for _, h := range record.Headers {
		field(h.Key, bytesText(h.Value))
	}
	_, _ = fmt.Fprintln(out, "record")
	field("key", bytesText(record.Key))
	if c.ShowPayload {
		field("value", bytesText(record.Value))
	} else {
		field("value", fmt.Sprintf("%d bytes (see --show-payload)", len(record.Value)))
	}
	if err := c.printState(ctx, out, tools, d); err != nil {
		return err
	}
	return out.Flush()
}

func (c *dlqShowCmd) printEvent(out io.Writer, field func(name, text string), d *deadLetter) {
	_, _ = fmt.Fprintln(out, "event")
	ev := &d.decoded.Event
	field("account", orDash(d.entry.AccountID))
	field("event id", orDash(d.entry.EventID))
	field("correlation id", orDash(ev.CorrelationID))
	switch fault := d.decoded.Fault; {
	case d.entry.Truncated:
		field("cannot be read", dlq.ErrTruncated.Error())
	case d.decoded.Tombstone || d.decoded.Skip:
		field("has no effect", "no value, or a type to ignore")
	case fault != nil:
		field("cannot be applied", string(fault.Class)+": "+fault.Error())
	default:
		field("type", ev.TypeName)
		field("version", strconv.FormatInt(ev.Version, 10))
		field("occurred at", timeText(time.UnixMicro(ev.OccurredAt)))
		field("currency", orDash(ev.Currency.Code()))
		field("amount", c.amountText(ev))
	}
}

func (c *dlqShowCmd) amountText(ev *event.Event) string {
	switch {
	case ev.Amount == 0:
		return "-"
	case c.ShowPayload:
		return event.FormatAmount(ev.Amount, ev.Currency)
	default:
		return "*** (see --show-payload)"
	}
}

// printState shows the account as it is now, without its balance unless asked for.
func (c *dlqShowCmd) printState(ctx context.Context, out io.Writer, tools *dlqTools, d *deadLetter) error {
	account, _, known := d.entry.Subject(&d.decoded)
	if !known || tools.kind.Name() != readmodel.BalanceName {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, oneShotWithin)
	defer cancel()
	_, _ = fmt.Fprintln(out, "account now")
	view, err := readmodel.ShowAccount(ctx, tools.pool, storable(account))
	if errors.Is(err, readmodel.ErrUnknownAccount) {
		_, _ = fmt.Fprintln(out, "  no event of it has been applied or parked")
		return nil
	}
	if err != nil {
		return err
	}
	if view.Balance != nil && !c.ShowPayload {
		view.Balance.Balance = "***"
	}
	return printAccount(out, &view)
}

// bytesText shows bytes to people.
func bytesText(b []byte) string {
	text, encoded := dlq.TextOrBase64(b)
	switch {
	case text != nil:
		return *text
	case encoded != nil:
		return "base64:" + *encoded
	default:
		return "null"
	}
}
