package readmodel

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"projector/projection"
)

// SliceRows is the largest number of rows in one statement. PostgreSQL unnests the arrays of the
// statement in work_mem, by default 4 MB, and writes larger arrays to a file.
const SliceRows = 8192

// EventColumns returns events as the arrays that custom_events.sql unnests, sorted by account and
// version. Partitions whose SQL processes the events in this order lock rows in the same order, so
// they do not deadlock.
func EventColumns(events []projection.CustomEvent) []any {
	n := len(events)
	var (
		names        = NewColumn(pgtype.TextOID, n, 16)
		versions     = NewColumn(pgtype.Int8OID, n, 8)
		ids          = NewColumn(pgtype.TextOID, n, 36)
		types        = NewColumn(pgtype.TextOID, n, 16)
		times        = NewColumn(pgtype.TimestamptzOID, n, 8)
		correlations = NewColumn(pgtype.TextOID, n, 36)
		data         = NewColumn(pgtype.TextOID, n, 128)
		topics       = NewColumn(pgtype.TextOID, n, 16)
		partitions   = NewColumn(pgtype.Int4OID, n, 4)
		offsets      = NewColumn(pgtype.Int8OID, n, 8)
	)
	for _, i := range sortedPlaces(events, compareEvents) {
		ev, r := &events[i].Event, &events[i].Record
		names.Text(ev.AccountID)
		versions.Int8(ev.Version)
		ids.Text(ev.ID)
		types.Text(ev.TypeName)
		times.Time(ev.OccurredAt)
		correlations.Text(ev.CorrelationID)
		data.Text(ev.Data)
		topics.Text(r.Topic)
		partitions.Int4(r.Partition)
		offsets.Int8(r.Offset)
	}
	return ColumnArgs(names, versions, ids, types, times, correlations, data, topics, partitions, offsets)
}

func compareEvents(a, b *projection.CustomEvent) int {
	return cmp.Or(strings.Compare(a.Event.AccountID, b.Event.AccountID), cmp.Compare(a.Event.Version, b.Event.Version))
}

// ColumnArgs returns columns as the arguments of a statement.
func ColumnArgs(columns ...*Column) []any {
	args := make([]any, len(columns))
	for i, c := range columns {
		args[i] = c
		columns[0].after += len(c.Fields)
	}
	return args
}

// PostgresEpoch is the time at which PostgreSQL's timestamps are 0: 2000-01-01, in microseconds
// since 1970.
const PostgresEpoch = 946_684_800_000_000

// NumericNegative is the sign of a negative numeric in binary format.
const NumericNegative = 0x4000

// Fields holds values in PostgreSQL's binary format. The length of each value is stored before the
// value.
type Fields []byte

// Text adds a text or a bytea.
func (f *Fields) Text(s string) {
	*f = append(binary.BigEndian.AppendUint32(*f, uint32(len(s))), s...) //nolint:gosec // G115: short
}

// Int8 adds a bigint.
func (f *Fields) Int8(v int64) {
	*f = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(*f, 8), uint64(v)) //nolint:gosec // G115: the same bits
}

// Time adds a timestamptz, given in microseconds since 1970.
func (f *Fields) Time(micro int64) { f.Int8(micro - PostgresEpoch) }

// Int4 adds an int.
func (f *Fields) Int4(v int32) {
	*f = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(*f, 4), uint32(v)) //nolint:gosec // G115: the same bits
}

// Int2 adds a smallint.
func (f *Fields) Int2(v int16) {
	*f = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(*f, 2), uint16(v)) //nolint:gosec // G115: the same bits
}

// Bool adds a boolean.
func (f *Fields) Bool(v bool) {
	var b byte
	if v {
		b = 1
	}
	*f = append(binary.BigEndian.AppendUint32(*f, 1), b)
}

// Null adds a null.
func (f *Fields) Null() { *f = binary.BigEndian.AppendUint32(*f, ^uint32(0)) }

// Money adds a numeric: an amount in minor units of a currency with at most 4 decimals. The format
// is that of numeric_recv in PostgreSQL: the number of digits in base 10,000, the weight of the
// first digit, the sign, the number of decimals to show, then the digits. One of these digits is
// after the decimal point.
func (f *Fields) Money(minor int64, decimals int) {
	const most = 6
	var (
		magnitude = uint64(minor) //nolint:gosec // G115: the same bits
		sign      uint16
		digits    [most]uint16
	)
	if minor < 0 {
		magnitude, sign = -magnitude, NumericNegative
	}
	unit := [5]uint64{1, 10, 100, 1000, 10_000}[decimals]
	digits[most-1] = uint16(magnitude % unit * (10_000 / unit)) //nolint:gosec // G115: below 10,000
	first := most - 1
	for whole := magnitude / unit; whole > 0; whole /= 10_000 {
		first--
		digits[first] = uint16(whole % 10_000)
	}
	n := most - first
	w := binary.BigEndian.AppendUint32(*f, uint32(8+2*n))
	w = binary.BigEndian.AppendUint16(w, uint16(n))
	w = binary.BigEndian.AppendUint16(w, uint16(n-2)) //nolint:gosec // G115: -1: only decimals
	w = binary.BigEndian.AppendUint16(w, sign)
	w = binary.BigEndian.AppendUint16(w, uint16(decimals)) //nolint:gosec // G115: small
	for _, d := range digits[first:] {
		w = binary.BigEndian.AppendUint16(w, d)
	}
	*f = w
}

// Column is a one-dimensional array in PostgreSQL's binary format (array_recv).
type Column struct {
	Fields
	after int // in the first column of a statement: bytes of all its columns, which share one buffer; otherwise 0
}

// NewColumn starts an array of n elements of about size bytes each.
func NewColumn(elementOID uint32, n, size int) *Column {
	w := make([]byte, 0, 20+n*(4+size))
	w = binary.BigEndian.AppendUint32(w, 1) // dimensions
	w = binary.BigEndian.AppendUint32(w, 0) // whether there are nulls
	w = binary.BigEndian.AppendUint32(w, elementOID)
	w = binary.BigEndian.AppendUint32(w, uint32(n))             //nolint:gosec // G115: at most SliceRows
	return &Column{Fields: binary.BigEndian.AppendUint32(w, 1)} // the lower bound of the array
}

// Null adds a null, and says in the array's header that there is one.
func (c *Column) Null() {
	c.Fields.Null()
	binary.BigEndian.PutUint32(c.Fields[4:], 1)
}

// columnCodec sends a Column unchanged. pgx encodes all other values.
type columnCodec struct{ pgtype.Codec }

// PlanEncode implements pgtype.Codec.
func (c columnCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if _, encoded := value.(*Column); encoded && format == pgtype.BinaryFormatCode {
		return columnPlan{}
	}
	return c.Codec.PlanEncode(m, oid, format, value)
}

type columnPlan struct{}

// Encode implements pgtype.EncodePlan.
func (columnPlan) Encode(value any, buf []byte) ([]byte, error) {
	c := value.(*Column) //nolint:forcetypeassert // see PlanEncode
	return append(slices.Grow(buf, max(c.after, len(c.Fields))), c.Fields...), nil
}

// RegisterColumns lets a connection with this type map accept Columns as arguments.
func RegisterColumns(types *pgtype.Map) {
	for _, oid := range []uint32{
		pgtype.TextArrayOID, pgtype.ByteaArrayOID, pgtype.Int8ArrayOID, pgtype.Int4ArrayOID, pgtype.Int2ArrayOID, pgtype.BoolArrayOID,
		pgtype.TimestamptzArrayOID,
	} {
		if t, known := types.TypeForOID(oid); known {
			types.RegisterType(&pgtype.Type{Name: t.Name, OID: oid, Codec: columnCodec{t.Codec}})
		}
	}
}
