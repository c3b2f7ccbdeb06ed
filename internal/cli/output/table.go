package output

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"projector/internal/telemetry"
)

// Table prints rows of columns with fixed widths, so that a million of them need
// no second look.
type Table struct {
	out     *bufio.Writer
	columns []Column
	limit   int  // characters of a row; 0: as many as it takes
	colours bool // the header stands out
}

// Column is one column of a table. The last one has no width.
type Column struct {
	Name  string
	Width int
	Right bool // aligned
}

// Left is a column that is aligned left. The last one needs no width.
func Left(name string, width int) Column { return Column{Name: name, Width: width} }

// Right is a column that is aligned right.
func Right(name string, width int) Column { return Column{Name: name, Width: width, Right: true} }

const (
	// narrowest is the terminal a table is still made for.
	narrowest = 80
	between   = "  "
)

// NewTable makes a table for w: what does not fit a column is cut on a terminal only.
// The column called flexible takes what the terminal has to spare.
func NewTable(w io.Writer, flexible string, columns ...Column) *Table {
	t := &Table{out: bufio.NewWriter(w), columns: columns, colours: telemetry.Colours(IsTerminal(w))}
	if width, isTerminal := terminalWidth(w); isTerminal {
		t.limit = max(width, narrowest)
		t.widen(flexible)
	}
	return t
}

// widen gives the flexible column what the others leave.
func (t *Table) widen(flexible string) {
	used, found := 0, -1
	for i, c := range t.columns {
		used += c.Width + len(between)
		if c.Name == flexible {
			found = i
		}
	}
	if spare := t.limit - used; found >= 0 && spare > 0 {
		t.columns[found].Width += spare
	}
}

// Header prints the names of the columns.
func (t *Table) Header() {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = c.Name
	}
	t.out.WriteString(Painted(t.colours, Bold, t.line(names)))
	t.out.WriteByte('\n')
}

// Row prints a row.
func (t *Table) Row(cells ...string) {
	t.out.WriteString(t.line(cells))
	t.out.WriteByte('\n')
}

// line is a row as text.
func (t *Table) line(cells []string) string {
	var line strings.Builder
	for i, cell := range cells {
		c := t.columns[i]
		cell = Printable(cell)
		if t.limit > 0 && c.Width > 0 {
			cell = clipped(cell, c.Width)
		}
		padding := strings.Repeat(" ", max(0, c.Width-utf8.RuneCountInString(cell)))
		if i > 0 {
			line.WriteString(between)
		}
		if c.Right {
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

// Flush writes what is left.
func (t *Table) Flush() error { return t.out.Flush() }

// Printable replaces what could move a terminal's cursor: ids are the producer's.
func Printable(text string) string {
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

// NotKnown is what a table has in the place of what Kafka could not be asked for.
const NotKnown = "?"

// OffsetText is an offset, or that it is not known.
func OffsetText(offset *int64) string {
	if offset == nil {
		return NotKnown
	}
	return strconv.FormatInt(*offset, 10)
}

// VersionText is a version or a position, or a dash.
func VersionText(version *int64) string {
	if version == nil {
		return "-"
	}
	return strconv.FormatInt(*version, 10)
}

// PlaceText is the place of a record.
func PlaceText(partition int32, offset int64) string { return fmt.Sprintf("%d/%d", partition, offset) }

// OrDash is what a table shows of what is not known.
func OrDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// OrNull is nil, in JSON null, for what is not known.
func OrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// TimeText writes a time as RFC 3339 in UTC. Years beyond 9999, which an event may
// reach by its offset, have more digits.
func TimeText(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// AgeText is a duration in its two largest units.
func AgeText(d time.Duration) string {
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
