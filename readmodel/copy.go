package readmodel

import (
	"bytes"
	"context"
	"encoding/binary"

	"projector/projection"
)

// CopyLeast is how many rows that are taken to be new are worth a COPY: it takes one more
// round trip than an INSERT, and half of PostgreSQL's time for a row.
const CopyLeast = 256

// CopyRows are rows as COPY takes them in binary format.
type CopyRows struct {
	wire    Fields
	columns uint16
	n       int64
}

// copyHead begins the binary format: its signature, no flags, nothing more.
const copyHead = "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"

// NewCopyRows begins about n rows of about size bytes each, with so many columns.
func NewCopyRows(columns, n, size int) *CopyRows {
	wire := append(make([]byte, 0, len(copyHead)+n*(2+4*columns+size)+2), copyHead...)
	return &CopyRows{wire: wire, columns: uint16(columns)} //nolint:gosec // G115: a few
}

// Begin begins a row. Its columns follow in their order.
func (r *CopyRows) Begin() {
	r.n++
	r.wire = binary.BigEndian.AppendUint16(r.wire, r.columns)
}

// Text adds a text or char(n).
func (r *CopyRows) Text(s string) { r.wire.Text(s) }

// TextOrNull adds a text, or null when it is empty.
func (r *CopyRows) TextOrNull(s string) {
	if s == "" {
		r.Null()
		return
	}
	r.wire.Text(s)
}

// Null adds no value.
func (r *CopyRows) Null() { r.wire.none() }

// Int4 adds an int.
func (r *CopyRows) Int4(v int32) { r.wire.Int4(v) }

// Int8 adds a bigint.
func (r *CopyRows) Int8(v int64) { r.wire.Int8(v) }

// Time adds a timestamptz, of microseconds since 1970.
func (r *CopyRows) Time(micro int64) { r.wire.Time(micro) }

// Money adds a numeric: minor units of a currency with so many decimals, at most 4.
func (r *CopyRows) Money(minor int64, decimals int) { r.wire.numeric(minor, decimals) }

// Copy sends what is queued, and then the rows by COPY, which statement names.
// projection.ErrStale: one of them is there already.
func (tx *Tx) Copy(ctx context.Context, statement string, rows *CopyRows) error {
	if err := tx.Send(ctx); err != nil {
		return err
	}
	rows.wire = binary.BigEndian.AppendUint16(rows.wire, ^uint16(0)) // the end
	tag, err := tx.conn.PgConn().CopyFrom(ctx, bytes.NewReader(rows.wire), statement)
	switch {
	case HasCode(err, uniqueViolation):
		return projection.ErrStale
	case err == nil && tag.RowsAffected() != rows.n:
		return ErrSuppressed
	}
	return err
}

// ErrSuppressed says that a row was written and is not there.
var ErrSuppressed error = suppressed{}

type suppressed struct{}

// Error implements error.
func (suppressed) Error() string {
	return "a row that was written is not there: is a trigger keeping rows from being written?"
}

// SafeText vouches for the text: it holds no data.
func (s suppressed) SafeText() string { return s.Error() }
