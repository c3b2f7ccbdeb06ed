// Package output prints the results, the progress and the logs of commands.
package output

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"projector/internal/cli/exit"
	"projector/internal/telemetry"
)

// Streams are the outputs of a command: results go to Out, logs and progress to Err. A command need
// not check whether a text was written, because Main reports the first error of Out at the end.
type Streams struct {
	Out io.Writer
	Err io.Writer
}

// Printf prints a part of the result.
func (s *Streams) Printf(format string, args ...any) { _, _ = fmt.Fprintf(s.Out, format, args...) }

// Notef prints a remark for a person to Err.
func (s *Streams) Notef(format string, args ...any) { _, _ = fmt.Fprintf(s.Err, format, args...) }

// Flags set the format in which results are printed.
type Flags struct {
	Output string `json:"-" default:"text" enum:"text,json" placeholder:"FORMAT" help:"text or json (default text)."`
}

// JSON reports whether the result is printed as JSON.
func (f *Flags) JSON() bool { return f.Output == "json" }

// Printed returns f. Generic code checks for this method to find the commands that have these
// flags.
func (f *Flags) Printed() *Flags { return f }

// jsonLines writes one JSON document per line. Its output is buffered until Flush.
type jsonLines struct {
	*json.Encoder
	*bufio.Writer
}

func newJSONLines(w io.Writer) *jsonLines {
	buffered := bufio.NewWriter(w)
	encoder := json.NewEncoder(buffered)
	encoder.SetEscapeHTML(false)
	return &jsonLines{encoder, buffered}
}

// PrintJSON writes one JSON document.
func PrintJSON(w io.Writer, document any) error {
	lines := newJSONLines(w)
	if err := lines.Encode(document); err != nil {
		return err
	}
	return lines.Flush()
}

// Print prints the document as JSON with --output=json, and the text otherwise.
func (f *Flags) Print(w io.Writer, document any, text string) error {
	if f.JSON() {
		return PrintJSON(w, document)
	}
	_, err := io.WriteString(w, text)
	return err
}

// LogFlags set the level and the format of the log.
type LogFlags struct {
	LogLevel  string `json:"-" env:"LOG_LEVEL" default:"info" placeholder:"LEVEL" group:"Log" help:"debug, info, warn or error (default info)."`
	LogFormat string `json:"-" env:"LOG_FORMAT" placeholder:"FORMAT" group:"Log" help:"text or json; default text on a terminal, else json."`
}

// Logger makes the logger, which writes to w.
func (f *LogFlags) Logger(w io.Writer) (*slog.Logger, error) {
	isTerminal := IsTerminal(w)
	if isTerminal && !strings.EqualFold(f.LogFormat, "json") {
		w = Unwrapped(w) // the text handler quotes values itself and writes colours
	}
	log, err := telemetry.NewLogger(w, isTerminal, f.LogLevel, f.LogFormat)
	if err != nil {
		return nil, exit.WrongUsage(err)
	}
	return log, nil
}

// LogChoices has the possible values of flags, by the flag's name.
var LogChoices = map[string][]string{
	"log-level":  {"debug", "info", "warn", "error"},
	"log-format": {"text", "json"},
}
