package telemetry

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/lmittmann/tint"
)

// NewLogger returns the program's logger.
//
// The level is debug, info, warn or error, and an empty level is info. The format is text or json.
// An empty format is text on a terminal, else json. The text format has colours if Colours returns
// true. For an unknown level or format, the error has the name of the flag, its variable and its valid values.
func NewLogger(w io.Writer, isTerminal bool, level, format string) (*slog.Logger, error) {
	lvl, known := levels[strings.ToLower(level)]
	if !known {
		return nil, fmt.Errorf("--log-level (LOG_LEVEL): unknown level %q; it takes debug, info, warn or error", level)
	}
	if format == "" {
		format = "json"
		if isTerminal {
			format = "text"
		}
	}
	switch strings.ToLower(format) {
	case "text":
		return slog.New(textHandler(w, isTerminal, lvl)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: lvl, ReplaceAttr: readableDuration})), nil
	default:
		return nil, fmt.Errorf("--log-format (LOG_FORMAT): unknown format %q; it takes text or json", format)
	}
}

// Colours reports whether text may be coloured. It returns true on a terminal, unless NO_COLOR is
// set (https://no-color.org) or TERM is dumb.
func Colours(isTerminal bool) bool {
	return isTerminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// levels has the values of --log-level. The empty value means info.
var levels = map[string]slog.Level{
	"debug": slog.LevelDebug, "": slog.LevelInfo, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
}

func textHandler(w io.Writer, isTerminal bool, level slog.Level) slog.Handler {
	opts := &tint.Options{
		Level:      level,
		NoColor:    !Colours(isTerminal),
		TimeFormat: "2006-01-02T15:04:05.000Z07:00",
	}
	if isTerminal {
		opts.TimeFormat = "15:04:05.000" // a person who watches the terminal knows the day
	}
	return tint.NewTextHandler(w, opts)
}

// readableDuration writes a duration as "1.5s". The default in JSON is nanoseconds, and the keys do
// not name a unit.
func readableDuration(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		return slog.String(a.Key, a.Value.Duration().Round(time.Microsecond).String())
	}
	return a
}

// These are attribute keys from OpenTelemetry's semantic conventions. The values have the types of
// the conventions: a partition id is a string, and an offset is a number.
const (
	keyTopic         = "messaging.destination.name"
	keyPartition     = "messaging.destination.partition.id" // string
	keyOffset        = "messaging.kafka.offset"             // int64
	keyGroup         = "messaging.consumer.group.name"
	keyServerAddress = "server.address"
	keyErrorMessage  = "exception.message" // its text has no amounts, payload or credentials
)

// These are attribute keys for which the conventions have no name.
const (
	KeyDependency = "projector.dependency"
	keySuppressed = "projector.log.suppressed" // number of equal lines since the last line
)

// Err returns an attribute with an error's text. The caller must make sure that the text contains
// no row, payload or connection string.
func Err(err error) slog.Attr {
	if err == nil {
		return slog.String(keyErrorMessage, "")
	}
	return slog.String(keyErrorMessage, err.Error())
}
