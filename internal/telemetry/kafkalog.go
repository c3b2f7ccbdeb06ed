package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/retry"
)

// levelTrace is lower than all levels of --log-level, because the client writes thousands of debug
// lines.
const levelTrace = slog.LevelDebug - 4

// KafkaLogger returns a logger through which the Kafka client writes to log. It lowers the levels
// of the client's lines: info (each rebalance step, each metadata update) becomes debug, and debug
// becomes trace. It throttles warnings and errors, because the client repeats them several times
// per second while a broker is down.
func KafkaLogger(log *slog.Logger) kgo.Logger {
	return &kafkaLogger{log: log, lines: retry.NewLines(kafkaQuiet, kafkaPauses...)}
}

// If no equal line has occurred for kafkaQuiet, the next equal line is written immediately. After
// this time the earlier problem is over, because the client retries within seconds.
const kafkaQuiet = 30 * time.Second

// kafkaPauses are the pauses between equal lines while a problem lasts. They grow up to 5 minutes.
var kafkaPauses = []time.Duration{
	5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 5 * time.Minute,
}

type kafkaLogger struct {
	log   *slog.Logger
	lines *retry.Lines // throttles warnings and errors
}

func (l *kafkaLogger) Level() kgo.LogLevel {
	ctx := context.Background()
	for _, level := range []kgo.LogLevel{kgo.LogLevelDebug, kgo.LogLevelInfo, kgo.LogLevelWarn, kgo.LogLevelError} {
		if l.log.Enabled(ctx, slogLevel(level)) {
			return level
		}
	}
	return kgo.LogLevelNone
}

func (l *kafkaLogger) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	ctx := context.Background()
	lvl := slogLevel(level)
	if !l.log.Enabled(ctx, lvl) {
		return
	}
	attrs := kafkaAttrs(keyvals)
	if lvl < slog.LevelWarn {
		l.log.LogAttrs(ctx, lvl, "kafka client: "+msg, attrs...)
		return
	}
	l.lines.Count(lineKey(msg, attrs), 1, func(n int) {
		if n > 1 {
			attrs = append(attrs, slog.Int(keySuppressed, n-1))
		}
		l.log.LogAttrs(ctx, lvl, "kafka client: "+msg, attrs...)
	})
}

func slogLevel(level kgo.LogLevel) slog.Level {
	switch level {
	case kgo.LogLevelError:
		return slog.LevelError
	case kgo.LogLevelWarn:
		return slog.LevelWarn
	case kgo.LogLevelInfo:
		return slog.LevelDebug
	default:
		return levelTrace
	}
}

// kafkaKeys maps the client's log keys to the names of OpenTelemetry's semantic conventions. Other
// keys get the prefix "kafka.".
var kafkaKeys = map[string]string{
	"topic":     keyTopic,
	"partition": keyPartition,
	"offset":    keyOffset,
	"group":     keyGroup,
	"addr":      keyServerAddress,
	"err":       keyErrorMessage,
}

func kafkaAttrs(keyvals []any) []slog.Attr {
	attrs := make([]slog.Attr, 0, len(keyvals)/2+1)
	for i := 0; i+1 < len(keyvals); i += 2 {
		name := fmt.Sprint(keyvals[i])
		key, ok := kafkaKeys[name]
		if !ok {
			key = "kafka." + name
		}
		attrs = append(attrs, slog.Attr{Key: key, Value: kafkaValue(key, keyvals[i+1])})
	}
	return attrs
}

func kafkaValue(key string, v any) slog.Value {
	if key == keyPartition { // the convention is a string
		return slog.StringValue(fmt.Sprint(v))
	}
	switch v := v.(type) {
	case error:
		return slog.StringValue(v.Error())
	case fmt.Stringer:
		return slog.StringValue(v.String())
	default:
		return slog.AnyValue(v)
	}
}

// lineKey returns a key that is equal for lines with the same problem and topic. It ignores digits,
// because during an outage each broker causes the same line with other addresses and ports.
func lineKey(msg string, attrs []slog.Attr) string {
	var b strings.Builder
	b.WriteString(msg)
	for _, a := range attrs {
		switch a.Key {
		case keyTopic:
			b.WriteString("|" + a.Value.String())
		case keyErrorMessage:
			b.WriteString("|" + strings.Map(withoutDigits, a.Value.String()))
		}
	}
	return b.String()
}

func withoutDigits(r rune) rune {
	if '0' <= r && r <= '9' {
		return -1
	}
	return r
}
