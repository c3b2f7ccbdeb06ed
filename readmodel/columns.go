package readmodel

import (
	"encoding/binary"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"projector/projection"
	"projector/readmodel/accounts"
)

// balanceColumns lays rows out as the arrays that insert_balance.sql unnests.
//
// They are encoded here and not by pgx, which takes each element through interfaces
// and reflection: BenchmarkColumns went from 910 to 230 ns a row, and from 7
// allocations a row to a few for all.
func balanceColumns(rows []accounts.Row) []any {
	n := len(rows)
	var (
		ids        = newColumn(pgtype.TextOID, n, 16)
		currencies = newColumn(pgtype.TextOID, n, 4)
		minor      = newColumn(pgtype.Int8OID, n, 8)
		digits     = newColumn(pgtype.Int2OID, n, 2)
		versions   = newColumn(pgtype.Int8OID, n, 8)
		closed     = newColumn(pgtype.BoolOID, n, 1)
		events     = newColumn(pgtype.TextOID, n, 36)
		times      = newColumn(pgtype.TimestamptzOID, n, 8)
	)
	for i := range rows {
		s := &rows[i].Account
		ids.text(rows[i].AccountID)
		currencies.text(s.Currency.Code())
		minor.int8(s.Balance)
		digits.int2(int16(s.Currency.Digits())) //nolint:gosec // 0 to 4
		versions.int8(s.Version)
		closed.bool(s.Closed)
		events.text(s.LastEventID)
		if s.LastEventAt == projection.NoTime {
			times.null()
		} else {
			times.int8(s.LastEventAt - postgresEpoch)
		}
	}
	all := []*column{ids, currencies, minor, digits, versions, closed, events, times}
	args := make([]any, len(all))
	for i, c := range all {
		args[i] = c
		ids.behind += len(c.wire)
	}
	return args
}

// storedColumn is the array of the versions that rows are written over.
func storedColumn(rows []accounts.Row) *column {
	stored := newColumn(pgtype.Int8OID, len(rows), 8)
	for i := range rows {
		stored.int8(rows[i].Stored)
	}
	return stored
}

// postgresEpoch is where PostgreSQL's times begin, 2000-01-01, in microseconds of ours.
const postgresEpoch = 946_684_800_000_000

// column is a one-dimensional array in PostgreSQL's binary format, see array_recv.
type column struct {
	wire   []byte
	behind int // bytes of this and the columns behind it, which go into one buffer
}

// newColumn begins an array of n elements of about size bytes each.
func newColumn(elementOID uint32, n, size int) *column {
	w := make([]byte, 0, 20+n*(4+size))
	w = binary.BigEndian.AppendUint32(w, 1) // dimensions
	w = binary.BigEndian.AppendUint32(w, 0) // whether there are nulls
	w = binary.BigEndian.AppendUint32(w, elementOID)
	w = binary.BigEndian.AppendUint32(w, uint32(n))           //nolint:gosec // G115: at most upsertSlice
	return &column{wire: binary.BigEndian.AppendUint32(w, 1)} // the first index
}

func (c *column) text(s string) {
	c.wire = append(binary.BigEndian.AppendUint32(c.wire, uint32(len(s))), s...) //nolint:gosec // G115: short
}

func (c *column) int8(v int64) {
	c.wire = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(c.wire, 8), uint64(v)) //nolint:gosec // G115: the same bits
}

func (c *column) int2(v int16) {
	c.wire = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(c.wire, 2), uint16(v)) //nolint:gosec // G115: the same bits
}

func (c *column) bool(v bool) {
	var b byte
	if v {
		b = 1
	}
	c.wire = append(binary.BigEndian.AppendUint32(c.wire, 1), b)
}

func (c *column) null() {
	c.wire = binary.BigEndian.AppendUint32(c.wire, ^uint32(0))
	binary.BigEndian.PutUint32(c.wire[4:], 1)
}

// columnCodec lets a column pass as it is and leaves all else to pgx.
type columnCodec struct{ pgtype.Codec }

// PlanEncode implements pgtype.Codec.
func (c columnCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if _, encoded := value.(*column); encoded && format == pgtype.BinaryFormatCode {
		return columnPlan{}
	}
	return c.Codec.PlanEncode(m, oid, format, value)
}

type columnPlan struct{}

// Encode implements pgtype.EncodePlan.
func (columnPlan) Encode(value any, buf []byte) ([]byte, error) {
	c := value.(*column) //nolint:forcetypeassert // see PlanEncode
	return append(slices.Grow(buf, max(c.behind, len(c.wire))), c.wire...), nil
}

// registerColumns makes a connection, whose types these are, take columns as arguments.
func registerColumns(types *pgtype.Map) {
	for _, oid := range []uint32{
		pgtype.TextArrayOID, pgtype.Int8ArrayOID, pgtype.Int2ArrayOID, pgtype.BoolArrayOID, pgtype.TimestamptzArrayOID,
	} {
		if t, known := types.TypeForOID(oid); known {
			types.RegisterType(&pgtype.Type{Name: t.Name, OID: oid, Codec: columnCodec{t.Codec}})
		}
	}
}
