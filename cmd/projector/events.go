package main

import (
	"errors"
	"os"

	"projector/internal/mapping"
	"projector/projection/event"
)

// eventFlags say how events look and which are expected.
type eventFlags struct {
	Format           string   `env:"EVENT_FORMAT" default:"json" group:"Events" help:"Wire format: json, debezium-outbox or cloudevents (default json)."`
	FirstVersion     int64    `env:"FIRST_VERSION" default:"1" placeholder:"N" group:"Events" help:"Version of an account's first event (default 1)."`
	Currencies       string   `env:"CURRENCIES" default:"all" placeholder:"CODES" group:"Events" help:"Accepted ISO 4217 codes, separated by commas (default all)."`
	IgnoreEventTypes []string `env:"IGNORE_EVENT_TYPES" placeholder:"TYPE" group:"Events" help:"Event types that only advance an account's version."`
	Mapping          string   `env:"EVENT_MAPPING" placeholder:"FILE" group:"Events" help:"YAML or JSON file that says how event types and fields are named and where they stand; see docs/formats.md."`

	DebeziumTypeHeader    string `env:"DEBEZIUM_TYPE_HEADER" placeholder:"NAME" group:"Events" help:"With debezium-outbox, the header that has the event type (default eventType)."`
	DebeziumVersionHeader string `env:"DEBEZIUM_VERSION_HEADER" placeholder:"NAME" group:"Events" help:"With debezium-outbox, the header that has the version (default version)."`
	DebeziumTimeHeader    string `env:"DEBEZIUM_TIME_HEADER" placeholder:"NAME" group:"Events" help:"With debezium-outbox, the header that has the time (default occurredAt)."`
	DebeziumTimeUnit      string `env:"DEBEZIUM_TIME_UNIT" default:"rfc3339" placeholder:"UNIT" group:"Events" help:"With debezium-outbox, what a time is that arrives as a number, since 1970: ms, us or ns; rfc3339 refuses numbers (default rfc3339)."`
}

func (f *eventFlags) format() (event.Format, error) {
	currencies, err := event.ParseCurrencies(f.Currencies)
	if err != nil {
		return nil, usagef("--currencies (CURRENCIES): %w", err)
	}
	if f.FirstVersion < 0 {
		return nil, usagef("--first-version (FIRST_VERSION): must not be negative")
	}
	unit, err := event.ParseTimeUnit(f.DebeziumTimeUnit)
	if err != nil {
		return nil, usagef("--debezium-time-unit (DEBEZIUM_TIME_UNIT): %w", err)
	}
	names, err := f.mapping()
	if err != nil {
		return nil, err
	}
	format, err := event.New(f.Format, event.Options{
		FirstVersion: f.FirstVersion, Currencies: currencies, Ignore: items(f.IgnoreEventTypes), Mapping: names.Mapping,
		Debezium: event.DebeziumOptions{
			TypeHeader: f.DebeziumTypeHeader, VersionHeader: f.DebeziumVersionHeader, TimeHeader: f.DebeziumTimeHeader,
			TimeUnit: unit,
		},
	})
	var conflict *event.MappingError
	switch {
	case errors.As(err, &conflict):
		return nil, usagef("--mapping (EVENT_MAPPING): %s: %w", f.Mapping, names.Locate(err))
	case err != nil:
		return nil, usagef("--format (EVENT_FORMAT): %w", err)
	}
	return format, nil
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
