package output

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"

	"projector/internal/telemetry"
)

// Table prints rows of columns. On a terminal the first rows determine the widths, and a long text
// is folded. If the output is no terminal, the widths are fixed (but see Rows.Fit) and a row is one
// line.
type Table struct {
	out      *bufio.Writer
	columns  []Column
	flexible string
	limit    int        // width of the terminal; 0: no terminal
	colours  bool       // the header is bold
	pending  [][]string // the header and rows that wait for a layout, or for the widths of the columns
	fits     bool       // without a terminal, too, the first rows determine the widths
	headed   bool       // the header was printed, or is the first of pending
	layout   *layout    // nil: not decided, or no terminal
}

// Column is one column of a table. The last column needs no width.
type Column struct {
	Name     string
	Width    int
	Right    bool // aligned right, for numbers, which are never cut
	optional bool
	text     bool
}

// Left returns a column that is aligned left.
func Left(name string, width int) Column { return Column{Name: name, Width: width} }

// Right returns a column that is aligned right.
func Right(name string, width int) Column { return Column{Name: name, Width: width, Right: true} }

// Outcome returns the column of the plans or, if they were executed, of the results.
func Outcome(done bool, width int) Column {
	if done {
		return Left("RESULT", width)
	}
	return Left("PLAN", width)
}

// Text returns a column for sentences. It must be the last column. A terminal shows the whole text,
// folded between words. The text is next to the other columns or, if there is too little space,
// below the row.
func Text(name string) Column { return Column{Name: name, Width: 30, text: true} }

// Optional marks a column that is left out if the terminal is too narrow.
func (c Column) Optional() Column {
	c.optional = true
	return c
}

const (
	// narrowest is the smallest terminal width that a table is laid out for.
	narrowest = 80
	between   = "  "
	// layoutRows is how many rows determine the layout.
	layoutRows = 500
)

// NewTable makes a table for w. The table escapes its cells itself, so it writes directly to the
// writer below a Safe. Cells are cut and columns are left out only on a terminal. The column named
// flexible gets the spare width.
func NewTable(w io.Writer, flexible string, columns ...Column) *Table {
	t := &Table{out: bufio.NewWriter(Unwrapped(w)), columns: columns, flexible: flexible, colours: telemetry.Colours(IsTerminal(w))}
	if width, isTerminal := terminalWidth(w); isTerminal {
		t.limit = max(width, narrowest)
	}
	return t
}

// Row prints a row. Before the first row it prints the header. Cells are formatted by OrDash.
func (t *Table) Row(cells ...any) {
	if !t.headed {
		t.headed = true
		names := make([]string, len(t.columns))
		for i, c := range t.columns {
			names[i] = c.Name
		}
		t.add(names, true)
	}
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = Printable(OrDash(cell))
	}
	t.add(row, false)
}

func (t *Table) add(row []string, header bool) {
	if t.limit == 0 && !t.fits || t.layout != nil {
		t.print(row, header)
		return
	}
	if t.pending = append(t.pending, row); len(t.pending) > layoutRows {
		t.settle(true)
	}
}

// widen makes each column as wide as the widest of its pending cells.
func (t *Table) widen() {
	for _, row := range t.pending {
		for i, cell := range row[:len(row)-1] { // nothing follows the last column
			t.columns[i].Width = max(t.columns[i].Width, shownWidth(cell))
		}
	}
	t.fits = false
}

// settle decides on a layout and prints the pending rows, the header first.
func (t *Table) settle(more bool) {
	if t.limit == 0 {
		t.widen()
	} else {
		t.layout = fitted(t.columns, t.flexible, t.pending, t.limit, more)
	}
	for i, row := range t.pending {
		t.print(row, i == 0)
	}
	t.pending = nil
}

func (t *Table) print(cells []string, header bool) {
	t.out.WriteString(Painted(t.colours && header, Bold, t.lines(cells)))
	t.out.WriteByte('\n')
}

// lines returns a row as it is printed. A folded text needs more than one line.
func (t *Table) lines(cells []string) string {
	row, l := t.line(cells), t.layout
	if l == nil || l.text < 0 || l.text >= len(cells) || l.textBelow() && cells[l.text] == none {
		return row
	}
	indent := strings.Repeat(" ", l.indent)
	text := strings.Join(folded(cells[l.text], t.limit-l.indent), "\n"+indent)
	if l.textBelow() {
		return row + "\n" + indent + text
	}
	return strings.TrimRight(padded(row, l.indent, false)+text, " ")
}

// line returns the columns of a row without a folded text.
func (t *Table) line(cells []string) string {
	var shown []string
	for i, cell := range cells {
		c, columns := t.columns[i], t.columns[i].Width
		if t.layout != nil {
			if t.layout.hidden[i] || i == t.layout.text {
				continue
			}
			if columns = t.layout.widths[i]; !c.Right {
				cell = displaywidth.TruncateString(cell, columns, "…")
			}
		}
		shown = append(shown, padded(cell, columns, c.Right))
	}
	return strings.TrimRight(strings.Join(shown, between), " ")
}

// Flush prints the pending rows and writes all buffered output.
func (t *Table) Flush() error {
	if len(t.pending) > 0 {
		t.settle(false)
	}
	if t.layout != nil {
		if left := t.layout.left(); left != "" {
			_, _ = fmt.Fprintf(t.out, "(%d columns have no room for %s)\n", t.limit, left)
		}
	}
	return t.out.Flush()
}

// Printable replaces characters that are hostile to a terminal, because ids come from producers.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, text)
}

// NotKnown is shown for a value that could not be read from Kafka.
const NotKnown = "?"

// OffsetText formats an offset. A nil offset is shown as not known.
func OffsetText(offset *int64) string {
	if offset == nil {
		return NotKnown
	}
	return OrDash(offset)
}

// PlaceText formats the partition and the offset of a record.
func PlaceText(partition int32, offset int64) string { return fmt.Sprintf("%d/%d", partition, offset) }

// PlaceIn formats the topic, the partition and the offset of a record. The topic may be unknown.
// The result is empty if the partition or the offset is unknown.
func PlaceIn(topic *string, partition *int32, offset *int64) string {
	switch {
	case partition == nil || offset == nil:
		return ""
	case topic == nil:
		return PlaceText(*partition, *offset)
	default:
		return *topic + " " + PlaceText(*partition, *offset)
	}
}

// The text none is shown for an absent value.
const none = "-"

// OrDash formats a value, or the value of a pointer. nil and empty texts become a dash.
func OrDash(value any) string {
	v := reflect.ValueOf(value)
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if !v.IsValid() || v.Kind() == reflect.String && v.Len() == 0 {
		return none
	}
	return fmt.Sprint(v)
}

// OrNull returns nil for an empty text. JSON shows nil as null.
func OrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// NumberOrNull returns the number in a text, with the same digits. It returns nil if the text is
// nil, or is not a decimal number in JSON. For example, a person may have written NaN by SQL.
func NumberOrNull(text *string) *json.Number {
	if text == nil || strings.Trim(*text, "-0123456789.") != "" || !json.Valid([]byte(*text)) {
		return nil
	}
	return new(json.Number(*text))
}

// TimeText formats a time as RFC 3339 in UTC. A year after 9999 has more than four digits. An
// event's time can have such a year because of its time zone.
func TimeText(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// AgeText formats a duration in at most two units.
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
