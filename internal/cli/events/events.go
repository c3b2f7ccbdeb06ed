// Package events has the flags about events: their format, their mapping and the schema registry.
package events

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"slices"
	"strings"

	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/credential"
	"projector/internal/mapping"
	"projector/internal/registry"
	"projector/projection/event"
	"projector/readmodel"
)

// EventFlags define how events are encoded and which events are accepted.
type EventFlags struct {
	Format           string     `env:"EVENT_FORMAT" default:"json" group:"Events" help:"Wire format: json, debezium-outbox, cloudevents, avro or protobuf (default json)."`
	FirstVersion     int64      `env:"FIRST_VERSION" default:"1" placeholder:"N" group:"Events" help:"Version of an account's first event (default 1)."`
	Currencies       string     `env:"CURRENCIES" default:"all" placeholder:"CODES" group:"Events" help:"Accepted ISO 4217 codes, separated by commas; ALL is the lek (default all)."`
	IgnoreEventTypes []string   `env:"IGNORE_EVENT_TYPES" placeholder:"TYPE" group:"Events" help:"Event types that only advance an account's version."`
	Mapping          flags.File `env:"EVENT_MAPPING" placeholder:"FILE" group:"Events" help:"YAML or JSON file with the names of event types and fields and where to find them; see docs/mapping.md."`

	DebeziumTypeHeader    string `env:"DEBEZIUM_TYPE_HEADER" placeholder:"NAME" group:"Events" help:"With debezium-outbox, the header that has the event type (default eventType)."`
	DebeziumVersionHeader string `env:"DEBEZIUM_VERSION_HEADER" placeholder:"NAME" group:"Events" help:"With debezium-outbox, the header that has the version (default version)."`
	DebeziumTimeHeader    string `env:"DEBEZIUM_TIME_HEADER" placeholder:"NAME" group:"Events" help:"With debezium-outbox, the header that has the time (default occurredAt)."`
	DebeziumTimeUnit      string `env:"DEBEZIUM_TIME_UNIT" default:"rfc3339" placeholder:"UNIT" group:"Events" help:"With debezium-outbox, the unit of a time that arrives as a number since 1970: ms, us or ns; rfc3339 refuses numbers (default rfc3339)."`

	RegistryFlags

	custom bool             // for a custom projection; set by Formats
	names  *mapping.Mapping // what the file of Mapping has said; see Reads
}

// Formats returns the resolver that finds the format of a message. It connects to no server. The
// function customTypes returns the event types that a custom projection reads, and none for a
// built-in projection.
func (f *EventFlags) Formats(customTypes func() ([]string, error)) (event.Resolver, error) {
	opts, names, err := f.options()
	if err != nil {
		return nil, err
	}
	if opts.CustomTypes, err = customTypes(); err != nil {
		return nil, err
	}
	f.custom = len(opts.CustomTypes) > 0
	formats, err := f.resolver(opts)
	if errors.As(err, new(*event.MappingError)) {
		return nil, f.wrongMapping(names.Locate(err))
	}
	return formats, err
}

func (f *EventFlags) resolver(opts event.Options) (event.Resolver, error) {
	if slices.Contains(registry.Formats(), f.Format) {
		if len(opts.CustomTypes) > 0 {
			return nil, exit.Usagef("--format (EVENT_FORMAT): %s goes without --projection-file (PROJECTION_FILE): %w", f.Format, event.ErrNoJSON)
		}
		cfg, err := f.registry(f.Format)
		if err != nil {
			return nil, err
		}
		return registry.New(f.Format, opts, cfg)
	}
	if err := checkFormat(f.Format); err != nil {
		return nil, err
	}
	format, err := event.New(f.Format, opts)
	if err != nil {
		return nil, err
	}
	return event.Always(format), nil
}

// checkFormat refuses an unknown --format.
func checkFormat(name string) error {
	known := slices.Sorted(slices.Values(slices.Concat(event.Formats(), registry.Formats())))
	if !slices.Contains(known, name) {
		return exit.Usagef("--format (EVENT_FORMAT): unknown event format %q (known: %s)", name, strings.Join(known, ", "))
	}
	return nil
}

// CheckFirstVersion refuses a negative --first-version.
func CheckFirstVersion(version int64) error {
	if version < 0 {
		return exit.Usagef("--first-version (FIRST_VERSION): must not be negative")
	}
	return nil
}

func (f *EventFlags) options() (event.Options, *mapping.Mapping, error) {
	currencies, err := event.ParseCurrencies(f.Currencies)
	if err != nil {
		return event.Options{}, nil, exit.Usagef("--currencies (CURRENCIES): %w", err)
	}
	if err := CheckFirstVersion(f.FirstVersion); err != nil {
		return event.Options{}, nil, err
	}
	unit, err := event.ParseTimeUnit(f.DebeziumTimeUnit)
	if err != nil {
		return event.Options{}, nil, exit.Usagef("--debezium-time-unit (DEBEZIUM_TIME_UNIT): %w", err)
	}
	names, err := f.Reads()
	if err != nil {
		return event.Options{}, nil, err
	}
	return event.Options{
		FirstVersion: f.FirstVersion, Currencies: currencies, Ignore: flags.Items(f.IgnoreEventTypes), Mapping: names.Mapping,
		Debezium: event.DebeziumOptions{
			TypeHeader: f.DebeziumTypeHeader, VersionHeader: f.DebeziumVersionHeader, TimeHeader: f.DebeziumTimeHeader,
			TimeUnit: unit,
		},
	}, names, nil
}

// Reads returns the mapping of these flags, which is stored with the positions. Without a file it is
// empty. It is complete after Formats was called. The file is read only once, because it may be a
// pipe, and because the stored mapping must be the one with which the events were read.
func (f *EventFlags) Reads() (*mapping.Mapping, error) {
	if f.names == nil {
		names, err := f.parse()
		if err != nil {
			return nil, err
		}
		f.names = names
	}
	f.names.Custom, f.names.FirstVersion = f.custom, &f.FirstVersion
	return f.names, nil
}

func (f *EventFlags) parse() (*mapping.Mapping, error) {
	if !f.Mapping.Given() {
		return new(mapping.Mapping), nil
	}
	text, err := f.Mapping.Read()
	if err != nil {
		return nil, exit.Usagef("--mapping (EVENT_MAPPING): %w", err)
	}
	names, err := mapping.Parse(text)
	if err != nil {
		return nil, f.wrongMapping(err)
	}
	return names, nil
}

// CheckMapping returns an error if the rows of the projection were made with another first version,
// or with a mapping that reads events differently. In this case, no event may be applied. Formats
// must be called first.
func (f *EventFlags) CheckMapping(ctx context.Context, db readmodel.Querier, name string) error {
	m, err := f.Reads()
	if err != nil {
		return err
	}
	return readmodel.CheckMapping(ctx, db, name, m)
}

func (f *EventFlags) wrongMapping(err error) error {
	return exit.Mistakes("--mapping (EVENT_MAPPING): "+f.Mapping.String()+": ", err)
}

// Choices has the possible values of flags, by the flag's name.
var Choices = map[string][]string{
	"format": append(event.Formats(), registry.Formats()...),
	"debezium-time-unit": {
		event.RFC3339.String(), event.Milliseconds.String(), event.Microseconds.String(), event.Nanoseconds.String(),
	},
}

// RegistryFlags are the flags of the schema registry. The files that these flags name are read
// again at each use.
type RegistryFlags struct {
	// ReadOnly is set by commands that write no dead letters, see registry.Config.
	ReadOnly bool `json:"-" kong:"-"`

	SchemaRegistryURL          []string `json:"-" name:"schema-registry-url" env:"SCHEMA_REGISTRY_URL" placeholder:"URL" group:"Schema registry" help:"With avro and protobuf, the schema registry; separate several equivalent ones with commas."`
	SchemaRegistryCA           string   `json:"-" name:"schema-registry-ca" env:"SCHEMA_REGISTRY_CA" type:"path" placeholder:"FILE" group:"Schema registry" help:"CA certificates (PEM) for https; default the system's."`
	SchemaRegistryUsername     string   `json:"-" name:"schema-registry-username" env:"SCHEMA_REGISTRY_USERNAME" placeholder:"NAME" group:"Schema registry" help:"User name."`
	SchemaRegistryPassword     string   `json:"-" name:"schema-registry-password" env:"SCHEMA_REGISTRY_PASSWORD" placeholder:"SECRET" group:"Schema registry" help:"Password; prefer the file."`
	SchemaRegistryPasswordFile string   `json:"-" name:"schema-registry-password-file" env:"SCHEMA_REGISTRY_PASSWORD_FILE" type:"path" placeholder:"FILE" group:"Schema registry" help:"File that holds the password."`
}

const flagRegistryURL = "--schema-registry-url (SCHEMA_REGISTRY_URL)"

// registry returns the configuration for a format that needs a registry. If a file cannot be read
// now, it returns an error. If the file cannot be read later, a request fails and is retried.
func (f *RegistryFlags) registry(format string) (registry.Config, error) {
	urls := flags.Items(f.SchemaRegistryURL)
	if len(urls) == 0 {
		return registry.Config{}, exit.Usagef("%s: is needed for --format=%s", flagRegistryURL, format)
	}
	for _, text := range urls {
		if err := checkRegistryURL(text); err != nil {
			return registry.Config{}, err
		}
	}
	transport := credential.TLS{CA: f.SchemaRegistryCA}
	if _, err := transport.Config(); err != nil {
		return registry.Config{}, exit.Usagef("--schema-registry-ca (SCHEMA_REGISTRY_CA): %w", err)
	}
	if err := f.checkCredentials(); err != nil {
		return registry.Config{}, err
	}
	return registry.Config{
		ReadOnly: f.ReadOnly,
		URLs:     urls, Username: f.SchemaRegistryUsername, Password: f.registryPassword, TLS: transport,
	}, nil
}

// checkRegistryURL checks a URL. Its error does not contain the URL, because the URL may have a
// password.
func checkRegistryURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return exit.Usagef("%s: must be a URL such as https://registry:8081", flagRegistryURL)
	case u.User != nil:
		return exit.Usagef("%s: must not hold a user or a password; give --schema-registry-username and --schema-registry-password-file", flagRegistryURL)
	case u.RawQuery != "" || u.Fragment != "":
		return exit.Usagef("%s: must not have a query or a fragment", flagRegistryURL)
	}
	return nil
}

// WarnClearRegistry logs a warning if the registry's password is sent in clear text.
func (f *RegistryFlags) WarnClearRegistry(log *slog.Logger) {
	if f.SchemaRegistryUsername == "" {
		return
	}
	for _, text := range flags.Items(f.SchemaRegistryURL) {
		if u, err := url.Parse(text); err == nil && u.Scheme == "http" && !flags.Loopback(u.Hostname()) {
			log.Warn("the password of the schema registry travels in clear text: use an https:// URL", slog.String("flag", flagRegistryURL))
			return
		}
	}
}

func (f *RegistryFlags) checkCredentials() error {
	given := f.SchemaRegistryPassword != "" || f.SchemaRegistryPasswordFile != ""
	switch {
	case f.SchemaRegistryPassword != "" && f.SchemaRegistryPasswordFile != "":
		return exit.Usagef("--schema-registry-password and --schema-registry-password-file " +
			"(SCHEMA_REGISTRY_PASSWORD, SCHEMA_REGISTRY_PASSWORD_FILE): give one of them")
	case given != (f.SchemaRegistryUsername != ""):
		return exit.Usagef("--schema-registry-username and --schema-registry-password-file " +
			"(SCHEMA_REGISTRY_USERNAME, SCHEMA_REGISTRY_PASSWORD_FILE): give both or none")
	}
	if _, err := f.registryPassword(); err != nil {
		return exit.WrongUsage(err)
	}
	return nil
}

// registryPassword returns the password that the file contains now, or that of the flag.
func (f *RegistryFlags) registryPassword() (string, error) {
	if f.SchemaRegistryPasswordFile == "" {
		return f.SchemaRegistryPassword, nil
	}
	return flags.FromFile("--schema-registry-password-file (SCHEMA_REGISTRY_PASSWORD_FILE)", f.SchemaRegistryPasswordFile)
}
