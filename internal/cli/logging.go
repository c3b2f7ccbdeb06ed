package cli

import (
	"io"
	"log/slog"

	"projector/internal/telemetry"
)

// logFlags say what is logged and how.
type logFlags struct {
	LogLevel  string `env:"LOG_LEVEL" default:"info" placeholder:"LEVEL" group:"Log" help:"debug, info, warn or error (default info)."`
	LogFormat string `env:"LOG_FORMAT" placeholder:"FORMAT" group:"Log" help:"text or json; default text on a terminal, else json."`
}

func (f *logFlags) logger(w io.Writer) (*slog.Logger, error) {
	log, err := telemetry.NewLogger(w, isTerminal(w), f.LogLevel, f.LogFormat)
	if err != nil {
		return nil, usageError{err}
	}
	return log, nil
}
