package telemetry

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/lmittmann/tint"
)

// NewLogger returns the program's logger.
//
// level is debug, info, warn or error ("" is info); format is text or json (""
// is text on a terminal, else json). Text has the colours that Colours allows.
// An unknown name is an error that names the flag and what it takes.
func NewLogger(w io.Writer, isTerminal bool, level, format string) (*slog.Logger, error) {
	lvl, err := parseLevel(level)
	if err != nil {
		return nil, err
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
		return nil, fmt.Errorf("--log-format: unknown format %q; it takes text or json", format)
	}
}

// Colours reports whether text may be coloured: on a terminal, unless NO_COLOR is
// set to anything (https://no-color.org) or the terminal says that it is dumb.
func Colours(isTerminal bool) bool {
	return isTerminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

func parseLevel(name string) (slog.Level, error) {
	switch strings.ToLower(name) {
	case "debug":
		return slog.LevelDebug, nil
	case "", "info":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	default:
		return 0, fmt.Errorf("--log-level: unknown level %q; it takes debug, info, warn or error", name)
	}
}

func textHandler(w io.Writer, isTerminal bool, level slog.Level) slog.Handler {
	opts := &tint.Options{
		Level:      level,
		NoColor:    !Colours(isTerminal),
		TimeFormat: "2006-01-02T15:04:05.000Z07:00",
	}
	if isTerminal {
		opts.TimeFormat = "15:04:05.000" // whoever watches knows the day
	}
	return tint.NewTextHandler(w, opts)
}

// readableDuration writes "1.5s" where slog's JSON has nanoseconds, which no
// key of ours says.
func readableDuration(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		return slog.String(a.Key, a.Value.Duration().Round(time.Microsecond).String())
	}
	return a
}

// Attribute keys. Where OpenTelemetry's semantic conventions have a name for
// the thing, it is used, with its type: a partition id is a string there, an
// offset a number.
const (
	keyTopic         = "messaging.destination.name"
	keyPartition     = "messaging.destination.partition.id" // string
	keyOffset        = "messaging.kafka.offset"             // int64
	keyGroup         = "messaging.consumer.group.name"
	keyServerAddress = "server.address"
	keyErrorMessage  = "exception.message" // without amounts, payload and credentials
)

// Attribute keys of the projector's own, where the conventions have none.
const (
	KeyDependency = "projector.dependency"
	keySuppressed = "projector.log.suppressed" // equal lines not written since the last one
)

// Err is the attribute of an error's text. The caller sees to it that the text
// carries no row, payload or connection string.
func Err(err error) slog.Attr {
	if err == nil {
		return slog.String(keyErrorMessage, "")
	}
	return slog.String(keyErrorMessage, err.Error())
}

const (
	throttleFirst = 5 * time.Second // pause after the first line of a key
	throttleMax   = 5 * time.Minute // the pause doubles up to this
	// throttleQuiet without a single occurrence ends the incident: the next
	// line is written at once. The client retries within seconds, so this is
	// no mere pause.
	throttleQuiet = 30 * time.Second
	// throttleKeys bounds memory, whatever texts arrive.
	throttleKeys = 256
)

// throttle lets repeated lines through at a falling rate, key by key: at once,
// then after 5 s, 10 s, 20 s and so on.
type throttle struct {
	clock func() time.Time

	mu   sync.Mutex
	keys map[string]*incident
}

type incident struct {
	last       time.Time // last occurrence, written or not
	next       time.Time // before this nothing is written
	pause      time.Duration
	suppressed int
}

func newThrottle(clock func() time.Time) *throttle {
	return &throttle{clock: clock, keys: make(map[string]*incident)}
}

// allow reports whether a line may be written now, and how many equal ones were
// held back since the last.
func (t *throttle) allow(key string) (suppressed int, ok bool) {
	now := t.clock()
	t.mu.Lock()
	defer t.mu.Unlock()
	i := t.keys[key]
	if i == nil || now.Sub(i.last) >= throttleQuiet {
		t.makeRoom(now)
		suppressed = 0
		if i != nil {
			suppressed = i.suppressed // the tail of the incident before
		}
		t.keys[key] = &incident{last: now, next: now.Add(throttleFirst), pause: throttleFirst}
		return suppressed, true
	}
	i.last = now
	if now.Before(i.next) {
		i.suppressed++
		return 0, false
	}
	suppressed = i.suppressed
	i.suppressed = 0
	i.pause = min(2*i.pause, throttleMax)
	i.next = now.Add(i.pause)
	return suppressed, true
}

// makeRoom forgets incidents that are over and, when that is not enough, all.
func (t *throttle) makeRoom(now time.Time) {
	if len(t.keys) < throttleKeys {
		return
	}
	for key, i := range t.keys {
		if now.Sub(i.last) >= throttleQuiet {
			delete(t.keys, key)
		}
	}
	if len(t.keys) >= throttleKeys {
		clear(t.keys)
	}
}
