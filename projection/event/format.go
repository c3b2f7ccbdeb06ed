package event

import (
	"fmt"
	"slices"
	"strings"
)

// Options are the rules of section "Events" that an operator can set.
type Options struct {
	// FirstVersion is the smallest version an event may have. It is taken as it
	// is: 0 means that versions start at 0.
	FirstVersion int64
	// Currencies are the accepted ones; the zero value accepts all.
	Currencies CurrencySet
	// Ignore names event types that only advance an account's version.
	Ignore []string
	// Mapping is how other people's events are read.
	Mapping Mapping
	// Debezium is for the format debezium-outbox only.
	Debezium DebeziumOptions
}

// FormatJSON is the name of the default format.
const FormatJSON = "json"

// formats are the wire formats by the name an operator chooses them by.
var formats = map[string]func(Options) (Format, error){
	FormatJSON:        newJSON,
	FormatDebezium:    newDebezium,
	FormatCloudEvents: newCloudEvents,
}

// Formats lists the names New knows, in alphabetical order.
func Formats() []string {
	names := make([]string, 0, len(formats))
	for name := range formats {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// New returns the wire format of that name. The error of an unknown name lists the
// known ones.
func New(name string, opts Options) (Format, error) {
	newFormat, ok := formats[name]
	if !ok {
		return nil, fmt.Errorf("unknown event format %q (known: %s)", name, strings.Join(Formats(), ", "))
	}
	return newFormat(opts)
}
