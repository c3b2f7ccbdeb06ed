package cli

import (
	"errors"
	"os"
	"slices"
	"strings"

	"projector/internal/mapping"
	"projector/internal/registry"
	"projector/projection/event"
)

// eventFlags say how events look and which are expected.
type eventFlags struct {
	Format           string   `env:"EVENT_FORMAT" default:"json" group:"Events" help:"Wire format: json, debezium-outbox, cloudevents, avro or protobuf (default json)."`
	FirstVersion     int64    `env:"FIRST_VERSION" default:"1" placeholder:"N" group:"Events" help:"Version of an account's first event (default 1)."`
	Currencies       string   `env:"CURRENCIES" default:"all" placeholder:"CODES" group:"Events" help:"Accepted ISO 4217 codes, separated by commas (default all)."`
	IgnoreEventTypes []string `env:"IGNORE_EVENT_TYPES" placeholder:"TYPE" group:"Events" help:"Event types that only advance an account's version."`
	Mapping          string   `env:"EVENT_MAPPING" placeholder:"FILE" group:"Events" help:"YAML or JSON file that says how event types and fields are named and where they stand; see docs/formats.md."`

	DebeziumTypeHeader    string `env:"DEBEZIUM_TYPE_HEADER" placeholder:"NAME" group:"Events" help:"With debezium-outbox, the header that has the event type (default eventType)."`
	DebeziumVersionHeader string `env:"DEBEZIUM_VERSION_HEADER" placeholder:"NAME" group:"Events" help:"With debezium-outbox, the header that has the version (default version)."`
	DebeziumTimeHeader    string `env:"DEBEZIUM_TIME_HEADER" placeholder:"NAME" group:"Events" help:"With debezium-outbox, the header that has the time (default occurredAt)."`
	DebeziumTimeUnit      string `env:"DEBEZIUM_TIME_UNIT" default:"rfc3339" placeholder:"UNIT" group:"Events" help:"With debezium-outbox, what a time is that arrives as a number, since 1970: ms, us or ns; rfc3339 refuses numbers (default rfc3339)."`

	schemaRegistryFlags
}

// formats are how events are read. Nothing is connected to yet.
func (f *eventFlags) formats() (event.Resolver, error) {
	opts, names, err := f.options()
	if err != nil {
		return nil, err
	}
	formats, err := f.resolver(opts)
	var conflict *event.MappingError
	if errors.As(err, &conflict) {
		return nil, usagef("--mapping (EVENT_MAPPING): %s: %w", f.Mapping, names.Locate(err))
	}
	return formats, err
}

func (f *eventFlags) resolver(opts event.Options) (event.Resolver, error) {
	if slices.Contains(registry.Formats(), f.Format) {
		cfg, err := f.registry(f.Format)
		if err != nil {
			return nil, err
		}
		return registry.New(f.Format, opts, cfg)
	}
	known := slices.Sorted(slices.Values(slices.Concat(event.Formats(), registry.Formats())))
	if !slices.Contains(known, f.Format) {
		return nil, usagef("--format (EVENT_FORMAT): unknown event format %q (known: %s)", f.Format, strings.Join(known, ", "))
	}
	format, err := event.New(f.Format, opts)
	if err != nil {
		return nil, err
	}
	return event.Always(format), nil
}

// options are those of every format, with the mapping they have.
func (f *eventFlags) options() (event.Options, *mapping.Mapping, error) {
	currencies, err := event.ParseCurrencies(f.Currencies)
	if err != nil {
		return event.Options{}, nil, usagef("--currencies (CURRENCIES): %w", err)
	}
	if f.FirstVersion < 0 {
		return event.Options{}, nil, usagef("--first-version (FIRST_VERSION): must not be negative")
	}
	unit, err := event.ParseTimeUnit(f.DebeziumTimeUnit)
	if err != nil {
		return event.Options{}, nil, usagef("--debezium-time-unit (DEBEZIUM_TIME_UNIT): %w", err)
	}
	names, err := f.mapping()
	if err != nil {
		return event.Options{}, nil, err
	}
	return event.Options{
		FirstVersion: f.FirstVersion, Currencies: currencies, Ignore: items(f.IgnoreEventTypes), Mapping: names.Mapping,
		Debezium: event.DebeziumOptions{
			TypeHeader: f.DebeziumTypeHeader, VersionHeader: f.DebeziumVersionHeader, TimeHeader: f.DebeziumTimeHeader,
			TimeUnit: unit,
		},
	}, names, nil
}

// mapping reads the file of that name; without one, the names are the contract's.
func (f *eventFlags) mapping() (*mapping.Mapping, error) {
	if f.Mapping == "" {
		return &mapping.Mapping{}, nil
	}
	text, err := os.ReadFile(f.Mapping)
	if err != nil {
		return nil, usagef("--mapping (EVENT_MAPPING): %w", err)
	}
	names, err := mapping.Parse(text)
	if err != nil {
		return nil, usagef("--mapping (EVENT_MAPPING): %s: %w", f.Mapping, err)
	}
	return names, nil
}
