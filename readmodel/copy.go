package readmodel

import (
	"bytes"
	"context"
	"encoding/binary"

	"projector/errclass"
	"projector/projection"
)

// CopyLeast is the smallest number of new rows for which COPY is faster than INSERT. COPY needs one
// more round trip, but only half of PostgreSQL's time per row.
const CopyLeast = 256

// CopyRows holds rows in the binary format of COPY.
type CopyRows struct {
	Fields
	columns uint16
	n       int64
}

// copyHead is the header of the binary format, with the signature, no flags and no extension.
const copyHead = "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"

// NewCopyRows returns a CopyRows with space for about n rows of about size bytes each.
func NewCopyRows(columns, n, size int) *CopyRows {
	wire := append(make([]byte, 0, len(copyHead)+n*(2+4*columns+size)+2), copyHead...)
	return &CopyRows{Fields: wire, columns: uint16(columns)} //nolint:gosec // G115: a few
}

// Begin starts a row. The caller then adds the columns of the row in order.
func (r *CopyRows) Begin() {
	r.n++
	r.Fields = binary.BigEndian.AppendUint16(r.Fields, r.columns)
}

// TextOrNull adds a text, or null when it is empty.
func (r *CopyRows) TextOrNull(s string) {
	if s == "" {
		r.Null()
		return
	}
	r.Text(s)
}

// Copy sends the queued statements, and then the rows by the COPY statement. It returns
// projection.ErrStale if one of the rows already exists.
func (tx *Tx) Copy(ctx context.Context, statement string, rows *CopyRows) error {
	if err := tx.Send(ctx); err != nil {
		return err
	}
	rows.Fields = binary.BigEndian.AppendUint16(rows.Fields, ^uint16(0)) // the trailer of the format
	tag, err := tx.PgConn().CopyFrom(ctx, bytes.NewReader(rows.Fields), statement)
	switch {
	case HasCode(err, uniqueViolation):
		return projection.ErrStale
	case err == nil && tag.RowsAffected() != rows.n:
		return ErrSuppressed
	}
	return err
}

// ErrSuppressed means that PostgreSQL accepted a row and did not store it, for example because of a
// trigger.
const ErrSuppressed errclass.Text = "a row that was written is not there: is a trigger keeping rows from being written?"
