package output

import (
	"cmp"
	"io"
)

// Rows prints the rows of a result one by one, as a table or as one JSON document per line.
type Rows struct {
	out   io.Writer
	lines *jsonLines // nil: text output
	table *Table
	n     int
	err   error // of a document that could not be written; End returns it
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
