package accountdb

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"unsafe"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"projector/errclass"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/accounts"
	"projector/readmodel/citus"
)

// Store reads accounts from the database.
type Store struct {
	DB           DB
	Formats      event.Resolver
	FirstVersion int64
}

var _ accounts.Store = Store{}

// Versions implements accounts.Store. It returns nil, because a Store has no version index.
func (Store) Versions(context.Context) *accounts.VersionIndex { return nil }

// Parked implements accounts.Store.
func (s Store) Parked(ctx context.Context, id string, above int64, limit int) ([]projection.Parked, bool, error) {
	return LoadParked(ctx, s.DB, s.Formats, id, above, limit)
}

// Accounts implements accounts.Store, in one round trip.
func (s Store) Accounts(ctx context.Context, ids []string, learn func(*projection.StoredAccount)) error {
	holds := map[string]projection.StoredAccount{}
	hold := func(rows pgx.Rows) error {
		h := projection.StoredAccount{Account: projection.NewAccount(s.FirstVersion)}
		_, err := pgx.ForEachRow(rows, []any{&h.ID, &h.Parked, &h.ParkedBytes, &h.NextParked, &h.NextClass, &h.Overflowed}, func() error {
			holds[h.ID] = h
			return nil
		})
		return err
	}
	known := func(rows pgx.Rows) error {
		return eachAccount(ctx, rows, func(a *projection.StoredAccount) {
			if h, held := holds[a.ID]; held {
				a.Parked, a.ParkedBytes, a.NextParked, a.NextClass, a.Overflowed = h.Parked, h.ParkedBytes, h.NextParked, h.NextClass, h.Overflowed
				delete(holds, h.ID)
			}
			learn(a)
		})
	}
	err := s.DB.inShards(ctx, func(db readmodel.Querier, shards citus.Shards) error {
		loadHolds := s.DB.Tables.Query("load_holds")
		if len(shards) > 0 {
			loadHolds = s.DB.Tables.QueryShard("load_holds")
		}
		b := &pgx.Batch{}
		for part := range citus.ByShard(shards, ids, func(id *string) string { return *id }) {
			b.Queue(loadHolds, part).Query(hold)
			b.Queue(s.DB.Tables.Query("load_accounts"), part).Query(known)
		}
		return db.SendBatch(ctx, b).Close()
	})
	if err != nil {
		return fmt.Errorf("load accounts: %w", err)
	}
	for _, h := range holds { // accounts without a balance row
		learn(&h)
	}
	return nil
}

// LoadVersions reads the current versions of the given accounts.
func LoadVersions(ctx context.Context, db DB, ids []string) (map[string]int64, error) {
	return readmodel.Map[string, int64](ctx, db, "load versions", db.Tables.Query("load_versions"), ids)
}

// accountFormats are the wire formats that accountRow expects for the columns of load_accounts.sql.
var accountFormats = []int16{
	pgtype.TextFormatCode, pgtype.TextFormatCode, pgtype.BinaryFormatCode, pgtype.BinaryFormatCode,
	pgtype.BinaryFormatCode, pgtype.TextFormatCode, pgtype.BinaryFormatCode,
}

// eachAccount calls fn with each row of load_accounts.sql. The strings in the account are valid
// until fn returns.
//
// The rows are decoded here, because pgx's Scan took 1.0 to 1.5 µs per row. accountRow takes 80 ns
// (see BenchmarkAccountRow) and allocates nothing.
func eachAccount(ctx context.Context, rows pgx.Rows, fn func(*projection.StoredAccount)) error {
	r := accountReader{ctx: ctx}
	_, err := pgx.ForEachRow(rows, []any{&r}, func() error {
		fn(&r.account)
		return nil
	})
	return err
}

// accountReader decodes a row from its bytes on the wire.
type accountReader struct {
	ctx     context.Context // the context of the query
	account projection.StoredAccount
	checked bool // the formats of the columns were checked
}

// ScanRow implements pgx.RowScanner.
func (r *accountReader) ScanRow(rows pgx.Rows) (err error) {
	if !r.checked {
		for i, f := range rows.FieldDescriptions() {
			if f.Format != accountFormats[i] {
				return fmt.Errorf("account_balance: column %s arrived in an unexpected format", f.Name)
			}
		}
		r.checked = true
	}
	row := rows.RawValues()
	if r.account, err = accountRow(row); err != nil {
		return errclass.Text(fmt.Sprintf("the row of account %q cannot be read: %s. Somebody has changed it by hand: put it right with projector rebuild%s --yes",
			row[0], err, readmodel.ReaderFlags(r.ctx)))
	}
	return nil
}

// accountRow reads a row of load_accounts.sql.
func accountRow(row [][]byte) (projection.StoredAccount, error) {
	a := projection.StoredAccount{ID: ViewOf(row[0]), Exists: true}
	s := &a.Account
	if len(row[1]) > 0 {
		c, known := event.CurrencyByCode(string(row[1]))
		if !known {
			return a, fmt.Errorf("account_balance.currency: %q is not an ISO 4217 code this program knows", row[1])
		}
		s.Currency = c
	}
	if len(row[3]) != 8 || len(row[4]) != 1 || len(row[6]) != 0 && len(row[6]) != 8 {
		return a, errors.New("account_balance: a column arrived with an unexpected length")
	}
	s.Version = int64(binary.BigEndian.Uint64(row[3])) //nolint:gosec // G115: the same bits
	s.Closed = row[4][0] != 0
	s.LastEventID = ViewOf(row[5])
	s.LastEventAt = projection.NoTime
	if len(row[6]) == 8 {
		s.LastEventAt = int64(binary.BigEndian.Uint64(row[6])) + readmodel.PostgresEpoch //nolint:gosec // G115: the same bits
	}
	var err error
	s.Balance, err = minorUnits(row[2], s.Currency.Digits())
	return a, err
}

// ViewOf returns b as a string without a copy. The string is valid as long as b is valid and
// unchanged.
func ViewOf(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	return unsafe.String(&b[0], len(b)) //nolint:gosec // G103: the caller keeps to it
}

var (
	errNotFinite = errors.New("account_balance.balance: not a finite number")
	errNotMinor  = errors.New("account_balance.balance: more decimals than the currency has, or out of range")
)

// minorUnits converts a numeric in binary format into minor units. The format is that of
// numeric_recv: the number of digits in base 10,000, the weight of the first digit, the sign, the
// number of decimals to show, and the digits.
func minorUnits(wire []byte, digits int) (int64, error) {
	if len(wire) < 8 {
		return 0, errNotFinite
	}
	n, weight := int(binary.BigEndian.Uint16(wire)), int(int16(binary.BigEndian.Uint16(wire[2:]))) //nolint:gosec // G115: signed on the wire
	sign := binary.BigEndian.Uint16(wire[4:])
	if sign != 0 && sign != readmodel.NumericNegative || len(wire) != 8+2*n {
		return 0, errNotFinite
	}
	var minor uint64
	exponent := 4*(weight+1) + digits // number of decimal digits up to the last digit of the minor units
	for i := range n {
		digit := uint64(binary.BigEndian.Uint16(wire[8+2*i:]))
		for _, unit := range [4]uint64{1000, 100, 10, 1} {
			d := digit / unit % 10
			exponent--
			switch {
			case exponent < 0 && d == 0:
			case exponent < 0 || minor > (math.MaxUint64-d)/10:
				return 0, errNotMinor
			default:
				minor = 10*minor + d
			}
		}
	}
	for ; exponent > 0 && minor > 0; exponent-- {
		if minor > math.MaxUint64/10 {
			return 0, errNotMinor
		}
		minor *= 10
	}
	switch {
	case sign == 0 && minor <= math.MaxInt64:
		return int64(minor), nil
	case sign == readmodel.NumericNegative && minor <= 1<<63:
		return -int64(minor), nil // also correct for -1<<63, which is its own negative
	}
	return 0, errNotMinor
}

// healBytes limits the bytes of parked events that are read at a time. The first event is always
// read, even if it is larger than this limit.
const healBytes = 1 << 20

// LoadStates reads the states of the given accounts. Accounts without a balance row are left out.
func LoadStates(ctx context.Context, db DB, ids []string) (map[string]projection.Account, error) {
	rows, _ := db.Query(ctx, db.Tables.Query("load_accounts"), ids)
	states := make(map[string]projection.Account, len(ids))
	err := eachAccount(ctx, rows, func(a *projection.StoredAccount) {
		s := a.Account
		s.LastEventID = strings.Clone(s.LastEventID)
		states[strings.Clone(a.ID)] = s
	})
	if err != nil {
		return nil, fmt.Errorf("load accounts: %w", err)
	}
	return states, nil
}
