// Package inspect has the command that decodes the first records of a topic and shows the result.
package inspect

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/errclass"
	"projector/internal/cli/events"
	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/internal/consumer"
	"projector/internal/mapping"
	"projector/internal/pace"
	"projector/internal/registry"
	"projector/internal/topic"
	"projector/projection/event"
)

// Cmd is the command inspect.
type Cmd struct {
	Partition   *int32 `placeholder:"N" help:"Partition to read; default some records of each."`
	Offset      *int64 `placeholder:"N" help:"Offset to begin at, in --partition; default the first available."`
	Limit       int64  `default:"10" placeholder:"N" help:"How many records (default 10)."`
	ShowPayload bool   `help:"Show keys, headers, values and amounts, which are otherwise masked."`
	Suggest     bool   `help:"Print a mapping file proposed for these records, with what a person has to decide. It is not used."`
	flags.KafkaFlags
	flags.FileFlags
	events.EventFlags
	output.LogFlags
	output.Flags
}

// Run decodes records and shows the result. It joins no group and writes nothing.
func (c *Cmd) Run(ctx context.Context, std *output.Streams) error {
	switch {
	case c.Limit < 1:
		return exit.Usagef("--limit: must be at least 1")
	case c.Partition != nil && *c.Partition < 0:
		return exit.Usagef("--partition: must not be negative")
	case c.Offset != nil && *c.Offset < 0:
		return exit.Usagef("--offset: must not be negative")
	}
	log, err := c.Logger(std.Err)
	if err != nil {
		return err
	}
	c.ReadOnly = true
	formats, err := c.Formats(c.CustomTypes)
	if err != nil {
		return err
	}
	options, err := c.Client(log)
	if err != nil {
		return err
	}
	waiting := pace.Begin(ctx, flags.OneShotWithin)
	return waiting.End(c.inspect(waiting.Context(), std, formats, options))
}

func (c *Cmd) inspect(ctx context.Context, std *output.Streams, formats event.Resolver, options []kgo.Opt) error {
	client, err := flags.OpenKafka(ctx, options)
	if err != nil {
		return err
	}
	defer client.Close()
	reader := topic.NewReader(client, c.Topic)
	lost := output.Unread{Topic: c.Topic}
	spans, err := c.spans(ctx, std, reader, &lost)
	if err != nil {
		return err
	}
	shown := c.printer(ctx, std)
	proposed := mapping.Samples{CloudEvents: c.Format == event.FormatCloudEvents}
	none := len(spans) > 0 // no record was read
	err = readEach(ctx, reader, spans, c.Limit, func(record *kgo.Record) error {
		none = false
		message := consumer.FromKafka(record).Message
		if c.Suggest {
			pace.Answered(ctx, 1)
			proposed.Add(message)
			return nil
		}
		format, err := formats.Resolve(ctx, message)
		if err != nil {
			return refusedBy(err)
		}
		pace.Answered(ctx, 1)
		for _, d := range decodeAll(record, message, format) {
			shown.add(d)
		}
		return nil
	}, lost.Add)
	if err != nil {
		return errors.Join(shown.rows.End(""), err)
	}
	if none && len(lost.Lost) == 0 {
		std.Notef("no record can be read: the offsets there are those of aborted transactions, of their markers, or of records that compaction has removed\n")
	}
	if c.Suggest {
		text, decide := proposed.Suggest(c.ShowPayload)
		err := c.Print(std.Out, suggestion{Mapping: text, Decide: decide}, text)
		return errors.Join(err, lost.Explain(std))
	}
	return errors.Join(shown.end(), lost.Explain(std))
}

func refusedBy(err error) error {
	if errors.As(err, new(*registry.Error)) {
		return exit.Refusef("%s; check --schema-registry-url (SCHEMA_REGISTRY_URL), its user and its CA", errclass.Safe(err))
	}
	return err
}

// spans returns the ranges to read. It prints a message if all ranges are empty.
func (c *Cmd) spans(ctx context.Context, std *output.Streams, reader *topic.Reader, lost *output.Unread) ([]topic.Span, error) {
	extents, exists, err := reader.Extents(ctx)
	if err != nil {
		return nil, err
	}
	if !exists {
		return nil, exit.Refusef("--topic (KAFKA_TOPIC): topic %q does not exist on these brokers; check the name and --brokers "+
			"(KAFKA_BROKERS), or create it", c.Topic)
	}
	chosen, err := c.choose(&extents)
	if err != nil {
		return nil, err
	}
	var spans []topic.Span
	for _, e := range chosen {
		if e.Err != nil {
			lost.Add(e.Err)
			continue
		}
		from, err := c.beginOffset(e)
		if err != nil {
			return nil, err
		}
		if from < e.End {
			spans = append(spans, topic.Span{Partition: e.Partition, From: from, To: e.End})
		}
	}
	if len(spans) == 0 && len(lost.Lost) == 0 {
		std.Notef("%s\n", c.emptiness(chosen))
	}
	return spans, nil
}

func (c *Cmd) choose(all *topic.Extents) ([]topic.Extent, error) {
	n := len(all.Partitions)
	switch {
	case c.Partition == nil && c.Offset != nil && n > 1:
		return nil, exit.Usagef("--offset: topic %s has %d partitions; name one with --partition", c.Topic, n)
	case c.Partition == nil:
		return all.Partitions, nil
	}
	if one, known := all.Of(*c.Partition); known {
		return []topic.Extent{one}, nil
	}
	return nil, exit.Refusef("--partition: topic %s has no partition %d; it has %s", c.Topic, *c.Partition, output.PartitionsText(n))
}

func (c *Cmd) beginOffset(e topic.Extent) (int64, error) {
	switch {
	case c.Offset == nil:
		return e.Start, nil
	case *c.Offset < e.Start:
		return 0, exit.Refusef("--offset: %d is no more in partition %d of topic %s: retention has removed what lies before %d; "+
			"give one from %d to %d, or none", *c.Offset, e.Partition, c.Topic, e.Start, e.Start, e.End)
	case *c.Offset > e.End:
		return 0, exit.Refusef("--offset: %d is beyond the end of partition %d of topic %s, which is %d; give one from %d to %d, or none",
			*c.Offset, e.Partition, c.Topic, e.End, e.Start, e.End)
	default:
		return *c.Offset, nil
	}
}

// emptiness returns a message for a topic or partition without records, with possible causes.
func (c *Cmd) emptiness(chosen []topic.Extent) string {
	if len(chosen) != 1 {
		return fmt.Sprintf("topic %s is empty: none of its %d partitions holds a record. Is it the topic, and are these the brokers, "+
			"that the producer writes to? --topic (KAFKA_TOPIC), --brokers (KAFKA_BROKERS)", c.Topic, len(chosen))
	}
	e := chosen[0]
	switch {
	case c.Offset != nil && *c.Offset > e.Start:
		return fmt.Sprintf("partition %d of topic %s ends at offset %d: there is no record yet; give a lower --offset", e.Partition, c.Topic, e.End)
	case e.Start > 0:
		return fmt.Sprintf("partition %d of topic %s is empty: retention has removed all records before offset %d, and none has come since",
			e.Partition, c.Topic, e.Start)
	default:
		return fmt.Sprintf("partition %d of topic %s is empty: no record was ever committed to it. Without --partition all are read; "+
			"a producer that sets keys may write to others", e.Partition, c.Topic)
	}
}

type suggestion struct {
	Mapping string   `json:"mapping"` // YAML
	Decide  []string `json:"decide"`
}
