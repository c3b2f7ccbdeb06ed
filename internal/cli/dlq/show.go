package dlq

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/dlq"
	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/internal/replay"
	"projector/internal/topic"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/accountdb"
)

type showCmd struct {
	Place       string `arg:"" name:"p/o" help:"Partition and offset in the DLQ topic, e.g. 3/1042."`
	ShowPayload bool   `help:"Show the value and amounts, which are otherwise masked."`
	topicFlags
	output.Flags
}

type shownDocument struct {
	deadLetterDocument
	output.Record
	*output.Payload // nil: the user has not asked for it
}

func (c *showCmd) Run(ctx context.Context, std *output.Streams) error {
	partition, offset, err := parsePlace(c.Place)
	if err != nil {
		return err
	}
	opened, err := c.open(ctx, std)
	if err != nil {
		return err
	}
	defer opened.close()
	record, err := opened.reader.ReadAt(ctx, partition, offset)
	if errors.Is(err, topic.ErrNoRecord) {
		return exit.Refusef("topic %s has no record at partition %d, offset %d%s; `projector dlq list%s` names the places, P/O in its column DLQ",
			opened.DeadLetterTopic(), partition, offset, opened.lacks(ctx, opened.DeadLetterTopic(), []int32{partition}), c.again())
	}
	if err != nil {
		return err
	}
	entry, err := dlq.Parse(record)
	if err != nil {
		return exit.Refusef("topic %s partition %d offset %d is no dead letter: %s", opened.DeadLetterTopic(), partition, offset, err.Error())
	}
	s := opened.scan(std, replay.Selection{}, false)
	s.Payload = true
	d, err := s.Read(ctx, opened.DeadLetterTopic(), entry)
	if err != nil {
		return err
	}
	if own := flags.DefinitionNamed(entry.Projection); own != nil {
		c.kind = own // the dead letter at this offset may be of another projection
		opened = c.tools(opened.pool, opened.client)
	}
	if err := replay.Assess(ctx, opened.store(0), []*replay.DeadLetter{d}); err != nil {
		return err
	}
	if c.JSON() {
		return output.PrintJSON(std.Out, c.describe(record, d))
	}
	return c.print(ctx, std, opened, record, d)
}

func parsePlace(text string) (partition int32, offset int64, err error) {
	before, after, found := strings.Cut(text, "/")
	p, errPartition := strconv.ParseInt(before, 10, 32)
	offset, errOffset := strconv.ParseInt(after, 10, 64)
	if !found || errPartition != nil || errOffset != nil || p < 0 || offset < 0 {
		return 0, 0, exit.Usagef("%q: want partition/offset in the DLQ topic, e.g. 3/1042", text)
	}
	return int32(p), offset, nil
}

func (c *showCmd) describe(record *kgo.Record, d *replay.DeadLetter) shownDocument {
	doc := shownDocument{deadLetterDocument: document(d), Record: output.RecordOf(record)}
	if c.ShowPayload {
		doc.Payload = output.PayloadOf(record)
	}
	return doc
}

func (c *showCmd) print(ctx context.Context, std *output.Streams, opened *tools, record *kgo.Record, d *replay.DeadLetter) error {
	field := func(name, text string) { std.Printf("  %-16s %s\n", output.Printable(name), output.Printable(text)) }
	e := &d.Entry
	std.Printf("dead letter %s of %s\n", placeOf(e), opened.DeadLetterTopic())
	field("status", string(d.Status))
	field("class", string(e.Class))
	field("why", e.Message)
	field("source", fmt.Sprintf("%s %s, record of %s", e.Topic, output.PlaceText(e.Partition, e.Offset), output.TimeText(time.UnixMilli(e.Timestamp))))
	field("failed at", output.TimeText(e.FailedAt))
	field("expected version", output.OrDash(e.Expected))
	field("received version", output.OrDash(e.Received))
	field("replays", strconv.Itoa(d.Replays))
	std.Printf("event\n")
	c.printEvent(field, d)
	std.Printf("headers\n")
	for _, h := range record.Headers {
		field(h.Key, output.BytesText(h.Value))
	}
	std.Printf("record\n")
	field("key", output.BytesText(record.Key))
	if c.ShowPayload {
		field("value", output.BytesText(record.Value))
	} else {
		field("value", fmt.Sprintf("%d bytes (see --show-payload)", len(record.Value)))
	}
	return c.printState(ctx, std, opened, d)
}

func (c *showCmd) printEvent(field func(name, text string), d *replay.DeadLetter) {
	ev := &d.Decoded.Event
	field("account", output.OrDash(d.Entry.AccountID))
	field("event id", output.OrDash(d.Entry.EventID))
	field("correlation id", output.OrDash(ev.CorrelationID))
	switch fault := d.Decoded.Fault; {
	case d.Entry.Truncated:
		field("cannot be read", dlq.ErrTruncated.Error())
	case d.Decoded.Tombstone || d.Decoded.Skip:
		field("has no effect", "no value, or a type to ignore")
	case fault != nil:
		field("cannot be applied", string(fault.Class)+": "+fault.Error())
	default:
		field("type", ev.TypeName)
		field("version", strconv.FormatInt(ev.Version, 10))
		field("occurred at", output.TimeText(time.UnixMicro(ev.OccurredAt)))
		field("currency", output.OrDash(ev.Currency.Code()))
		field("amount", c.amountText(ev))
	}
}

func (c *showCmd) amountText(ev *event.Event) string {
	switch {
	case ev.Amount == 0:
		return "-"
	case c.ShowPayload:
		return event.FormatAmount(ev.Amount, ev.Currency)
	default:
		return "*** (see --show-payload)"
	}
}

// printState prints the present state of the account. The balance is shown only if requested.
func (c *showCmd) printState(ctx context.Context, std *output.Streams, opened *tools, d *replay.DeadLetter) error {
	account, _, known := d.Entry.Subject(&d.Decoded)
	if !known || !opened.kind.Accounts() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, flags.OneShotWithin)
	defer cancel()
	std.Printf("account now\n")
	view, err := accountdb.ShowAccount(ctx, opened.pool, opened.kind.Name(), readmodel.Storable(account))
	if errors.Is(err, accountdb.ErrUnknownAccount) {
		std.Printf("  no event of it has been applied or parked\n")
		return nil
	}
	if err != nil {
		return err
	}
	if view.Balance != nil && view.Balance.Balance != "" && !c.ShowPayload {
		view.Balance.Balance = "***"
	}
	return output.PrintAccount(std, &view, c.again())
}
