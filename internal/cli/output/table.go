package output

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"

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

// lines returns a row as it is printed. A long text is folded into several lines.
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

// Rows prints the rows of a result one by one, as a table or as one JSON document per line.
type Rows struct {
	out   io.Writer
	lines *jsonLines // nil: text output
	table *Table
	n     int
	err   error // of a document that could not be written
}

// Rows begins a result. Nothing is printed before the first row. NewTable explains the parameters
// flexible and columns.
func (f *Flags) Rows(w io.Writer, flexible string, columns ...Column) *Rows {
	r := &Rows{out: w, table: NewTable(w, flexible, columns...)}
	if f.JSON() {
		r.lines = newJSONLines(w)
	}
	return r
}

// Add prints a row. JSON output contains the document, and text output contains the cells.
func (r *Rows) Add(document any, cells ...any) {
	switch r.n++; {
	case r.lines == nil:
		r.table.Row(cells...)
	case r.err == nil:
		r.err = r.lines.Encode(document)
	}
}

// Err returns the error of a document that could not be written, as End does. A caller that reads rows
// while it adds them stops reading then.
func (r *Rows) Err() error { return r.err }

// Fit makes the columns of text output wide enough for the first rows, also without a terminal. It
// is for columns that are usually wider than their names, and that must stay narrow on a terminal.
func (r *Rows) Fit() *Rows {
	r.table.fits = true
	return r
}

// Len returns the number of rows so far.
func (r *Rows) Len() int { return r.n }

// Total prints a row in text output only.
func (r *Rows) Total(cells ...any) {
	if r.lines == nil {
		r.table.Row(cells...)
	}
}

// End ends the result and returns the first error of writing it. If text output has no rows, End
// prints the argument nothing as a line, unless the argument is empty.
func (r *Rows) End(nothing string) error {
	switch {
	case r.lines != nil:
		return cmp.Or(r.err, r.lines.Flush())
	case r.n == 0 && nothing != "":
		_, err := io.WriteString(r.out, nothing+"\n")
		return err
	default:
		return r.table.Flush()
	}
}
