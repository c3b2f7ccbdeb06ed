package events

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/internal/mapping"
	"projector/projection/event"
)

// MappingCmd are the commands about mapping files.
type MappingCmd struct {
	Check mappingCheckCmd `cmd:"" help:"Check a mapping file and show where each field is read from. Needs no server."`
}

type mappingCheckCmd struct {
	File   string `arg:"" placeholder:"FILE" help:"The mapping file."`
	Format string `env:"EVENT_FORMAT" default:"json" group:"Events" help:"Wire format that it is for: json, debezium-outbox, cloudevents, avro or protobuf (default json)."`
	output.Flags
}

type mappingDocument struct {
	Format string          `json:"format"`
	Fields []fieldDocument `json:"fields"`
	Types  []typeDocument  `json:"types"`
	Notes  []string        `json:"notes"`  // what a person has to check
	SHA256 string          `json:"sha256"` // hash of the meaning, not of the file
}

type fieldDocument struct {
	Field string `json:"field"`
	From  string `json:"from"`
	Shape string `json:"shape"`
}

type typeDocument struct {
	Name  string `json:"name"`  // the name that the producer uses
	Means string `json:"means"` // the built-in type, ignored, or one type for each sign
}

func (c *mappingCheckCmd) Run(_ context.Context, std *output.Streams) error {
	if err := checkFormat(c.Format); err != nil {
		return err
	}
	text, err := flags.FileNamed(c.File).Read()
	if err != nil {
		return exit.Usagef("<file>: %w", err)
	}
	m, err := mapping.Parse(text)
	if err != nil {
		return exit.Mistakes(c.File+": ", err)
	}
	places, err := event.Places(c.Format, event.Options{Mapping: m.Mapping})
	if errors.As(err, new(*event.MappingError)) {
		return exit.Mistakes(c.File+": ", m.Locate(err))
	} else if err != nil {
		return err
	}
	doc := mappingDocument{Format: c.Format, Fields: []fieldDocument{}, Types: typeDocuments(&m.Mapping), Notes: notes(&m.Mapping), SHA256: m.SHA256()}
	for _, p := range places {
		doc.Fields = append(doc.Fields, fieldDocument{Field: p.Field, From: p.From, Shape: p.Written})
	}
	if c.JSON() {
		return output.PrintJSON(std.Out, doc)
	}
	c.print(std, &doc)
	return nil
}

func (c *mappingCheckCmd) print(std *output.Streams, doc *mappingDocument) {
	std.Printf("%s: right, for --format=%s\n", output.Printable(c.File), c.Format)
	for _, f := range doc.Fields {
		std.Printf("  %-14s %s  (%s)\n", f.Field, output.Printable(f.From), f.Shape)
	}
	for _, t := range doc.Types {
		std.Printf("  %s means %s\n", output.Printable(t.Name), t.Means)
	}
	for _, note := range doc.Notes {
		std.Printf("note: %s\n", note)
	}
}

// notes returns what a person has to check, because the program cannot check it.
func notes(m *event.Mapping) []string {
	list := []string{}
	if m.Envelope.Entries != nil {
		list = append(list, "each entry is an event. Are all events of an account in one partition? If not, balances are exact in the end, "+
			"but accounts wait for each other's partitions, with dead letters of class version_gap: docs/mapping.md, \"An array of entries\"")
	}
	if m.Time.Counts() {
		list = append(list, fmt.Sprintf("occurredAt: in unit %s, the year 2026 begins at %s. No check can find a wrong unit: look at the dates that "+
			"projector inspect --mapping shows", m.Time, m.Time.Example()))
	}
	return list
}

func typeDocuments(m *event.Mapping) []typeDocument {
	docs := []typeDocument{}
	for name, kind := range m.Types {
		docs = append(docs, typeDocument{name, meaningOf(kind)})
	}
	for name, signed := range m.Signed {
		docs = append(docs, typeDocument{name, fmt.Sprintf("%s above zero, %s below, %s for zero",
			meaningOf(signed.Positive), meaningOf(signed.Negative), meaningOf(signed.Zero))})
	}
	slices.SortFunc(docs, func(a, b typeDocument) int { return strings.Compare(a.Name, b.Name) })
	return docs
}

func meaningOf(kind event.Type) string {
	switch kind {
	case event.Ignorable:
		return "ignored"
	case event.Unknown:
		return "refused"
	default:
		return kind.Name()
	}
}
