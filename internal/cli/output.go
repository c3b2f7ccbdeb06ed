package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"projector/errclass"
	"projector/internal/telemetry"
)

// outputFlags say how results are printed.
type outputFlags struct {
	Output string `default:"text" enum:"text,json" placeholder:"FORMAT" help:"text or json (default text)."`
}

func (f *outputFlags) json() bool { return f.Output == "json" }

// refusal is a failure whose text is ours: it names accounts and versions, and
// carries no amount and no payload.
type refusal struct{ text string }

// Error implements error.
func (e refusal) Error() string { return e.text }

// SafeText implements errclass.Describer.
func (e refusal) SafeText() string { return e.text }

var _ errclass.Describer = refusal{}

// refusef makes a failure of text that may be shown.
func refusef(format string, args ...any) error { return refusal{fmt.Sprintf(format, args...)} }

// jsonLines writes one JSON document a line.
type jsonLines struct {
	buffered *bufio.Writer
	encoder  *json.Encoder
}

func newJSONLines(w io.Writer) *jsonLines {
	buffered := bufio.NewWriter(w)
	encoder := json.NewEncoder(buffered)
	encoder.SetEscapeHTML(false)
	return &jsonLines{buffered, encoder}
}

func (l *jsonLines) write(document any) error { return l.encoder.Encode(document) }

func (l *jsonLines) flush() error { return l.buffered.Flush() }

// printJSON writes one JSON document.
func printJSON(w io.Writer, document any) error {
	lines := newJSONLines(w)
	if err := lines.write(document); err != nil {
		return err
	}
	return lines.flush()
}

// orNull is nil, in JSON null, for what is not known.
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// timeText writes a time as RFC 3339 in UTC. Years beyond 9999, which an event may
// reach by its offset, have more digits.
func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// table prints rows of columns with fixed widths, so that a million of them need
// no second look.
type table struct {
	out     *bufio.Writer
	columns []column
	limit   int  // characters of a row; 0: as many as it takes
	colours bool // the header stands out
}

// column is one column of a table. The last one has no width.
type column struct {
	name  string
	width int
	right bool // aligned
}

const (
	// narrowest is the terminal a table is still made for.
	narrowest = 80
	between   = "  "
)

// newTable makes a table for w: what does not fit a column is cut on a terminal only.
// The column called flexible takes what the terminal has to spare.
func newTable(w io.Writer, flexible string, columns ...column) *table {
	t := &table{out: bufio.NewWriter(w), columns: columns, colours: telemetry.Colours(isTerminal(w))}
	if width, isTerminal := terminalWidth(w); isTerminal {
		t.limit = max(width, narrowest)
		t.widen(flexible)
	}
	return t
}

// widen gives the flexible column what the others leave.
func (t *table) widen(flexible string) {
	used, found := 0, -1
	for i, c := range t.columns {
		used += c.width + len(between)
		if c.name == flexible {
			found = i
		}
	}
	if spare := t.limit - used; found >= 0 && spare > 0 {
		t.columns[found].width += spare
	}
}

func (t *table) header() {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = c.name
	}
	t.out.WriteString(painted(t.colours, bold, t.line(names)))
	t.out.WriteByte('\n')
}

func (t *table) row(cells ...string) {
	t.out.WriteString(t.line(cells))
	t.out.WriteByte('\n')
}

// line is a row as text.
func (t *table) line(cells []string) string {
	var line strings.Builder
	for i, cell := range cells {
		c := t.columns[i]
		cell = printable(cell)
		if t.limit > 0 && c.width > 0 {
			cell = clipped(cell, c.width)
		}
		padding := strings.Repeat(" ", max(0, c.width-utf8.RuneCountInString(cell)))
		if i > 0 {
			line.WriteString(between)
		}
		if c.right {
			line.WriteString(padding + cell)
		} else {
			line.WriteString(cell + padding)
		}
	}
	text := strings.TrimRight(line.String(), " ")
	if t.limit > 0 {
		text = clipped(text, t.limit)
	}
	return text
}

func (t *table) flush() error { return t.out.Flush() }

// printable replaces what could move a terminal's cursor: ids are the producer's.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, text)
}

func clipped(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}

// orDash is what a table shows of what is not known.
func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// ageText is a duration in its two largest units.
func ageText(d time.Duration) string {
	const day = 24 * time.Hour
	d = max(0, d)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < day:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	case d < 100*day:
		return fmt.Sprintf("%dd%dh", int(d/day), int(d.Hours())%24)
	default:
		return fmt.Sprintf("%dd", int(d/day))
	}
}

// progress says on stderr how far a long command is: on a terminal in one line
// that is written over, else a line every few seconds.
type progress struct {
	out      io.Writer
	what     string
	terminal bool
	last     time.Time
	shown    bool
}

const (
	progressOnTerminal = 200 * time.Millisecond
	progressInLog      = 5 * time.Second
)

func newProgress(w io.Writer, what string) *progress {
	return &progress{out: w, what: what, terminal: movesCursor(w), last: time.Now()}
}

func (p *progress) update(done, total int64) {
	every, end := progressInLog, "\n"
	if p.terminal {
		every, end = progressOnTerminal, "\r"
	}
	if time.Since(p.last) < every {
		return
	}
	p.last, p.shown = time.Now(), true
	if total > 0 {
		_, _ = fmt.Fprintf(p.out, "%s: %d of %d (%d %%)%s", p.what, done, total, 100*done/total, end)
	} else {
		_, _ = fmt.Fprintf(p.out, "%s: %d%s", p.what, done, end)
	}
}

// done clears the terminal's line.
func (p *progress) done() {
	if p.terminal && p.shown {
		_, _ = fmt.Fprint(p.out, "\r\x1b[K")
	}
}
