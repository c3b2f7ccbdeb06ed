package output

import "io"

// Rows prints a result row by row, as it comes: a table, or a JSON document a line.
type Rows struct {
	out   io.Writer
	lines *JSONLines // nil: for people
	table *Table
	n     int
}

// Rows begins a result. Nothing is printed before the first row; the rest is as for NewTable.
func (f *Flags) Rows(w io.Writer, flexible string, columns ...Column) *Rows {
	r := &Rows{out: w, table: NewTable(w, flexible, columns...)}
	if f.JSON() {
		r.lines = NewJSONLines(w)
	}
	return r
}

// Add prints a row: its document for programs, its cells for people.
func (r *Rows) Add(document any, cells ...any) error {
	if r.n++; r.lines != nil {
		return r.lines.Write(document)
	}
	r.table.Row(cells...)
	return nil
}

// Len is how many rows there were.
func (r *Rows) Len() int { return r.n }

// Total prints a row that is for people alone.
func (r *Rows) Total(cells ...any) {
	if r.lines == nil {
		r.table.Row(cells...)
	}
}

// End writes what is left. nothing is the line for people when there was no row; empty: none.
func (r *Rows) End(nothing string) error {
	switch {
	case r.lines != nil:
		return r.lines.Flush()
	case r.n == 0 && nothing != "":
		_, err := io.WriteString(r.out, nothing+"\n")
		return err
	default:
		return r.table.Flush()
	}
}
