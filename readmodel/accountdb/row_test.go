package accountdb

import (
	"math/big"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"pgregory.net/rapid"

	"projector/projection"
	"projector/projection/event"
)

// The function encoded returns a value in the binary format of PostgreSQL.
func encoded(t testing.TB, oid uint32, value any) []byte {
	t.Helper()
	wire, err := pgtype.NewMap().Encode(oid, pgtype.BinaryFormatCode, value, nil)
	if err != nil {
		t.Fatal(err)
	}
	return wire
}

// A stored balance is read exactly at any scale. It is refused if it is not a whole number of minor
// units or does not fit.
func TestStoredBalancesAreReadExactly(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		digits := rapid.IntRange(0, 4).Draw(rt, "digits")
		coefficient := big.NewInt(rapid.Int64().Draw(rt, "coefficient"))
		exponent := rapid.IntRange(-12, 8).Draw(rt, "exponent")
		got, err := minorUnits(encoded(t, pgtype.NumericOID, pgtype.Numeric{Int: coefficient, Exp: int32(exponent), Valid: true}), digits)

		want := new(big.Rat).SetInt(coefficient)
		power := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(exponent+digits, -exponent-digits))), nil))
		if exponent+digits < 0 {
			power.Inv(power)
		}
		want.Mul(want, power)
		fits := want.IsInt() && want.Num().IsInt64()
		if (err == nil) != fits || fits && got != want.Num().Int64() {
			rt.Fatalf("%v e%d with %d digits: %d, %v; want %v", coefficient, exponent, digits, got, err, want)
		}
	})
}

func TestWhatIsNoFiniteNumberIsRefused(t *testing.T) {
	for _, n := range []pgtype.Numeric{{NaN: true, Valid: true}, {InfinityModifier: pgtype.Infinity, Valid: true}} {
		if v, err := minorUnits(encoded(t, pgtype.NumericOID, n), 2); err == nil {
			t.Errorf("%+v was taken for %d", n, v)
		}
	}
	for _, wire := range [][]byte{nil, {0}, {0, 9, 0, 0, 0, 0, 0, 0}} {
		if v, err := minorUnits(wire, 2); err == nil {
			t.Errorf("%x was taken for %d", wire, v)
		}
	}
}

// BenchmarkAccountRow decodes a row in PostgreSQL's binary format.
func BenchmarkAccountRow(b *testing.B) {
	balance := pgtype.Numeric{Int: big.NewInt(1_234_567_89), Exp: -2, Valid: true}
	row := [][]byte{
		[]byte("acc-00000042"),
		[]byte("EUR"),
		encoded(b, pgtype.NumericOID, balance),
		encoded(b, pgtype.Int8OID, int64(17)),
		{0},
		[]byte("7f9c24e8-3b12-4d0f-9c7e-2f1f00000042"),
		encoded(b, pgtype.TimestamptzOID, time.Unix(1_767_225_600, 0)),
	}
	euro, _ := event.CurrencyByCode("EUR")
	want := projection.Account{
		Version: 17, Balance: 1_234_567_89, Currency: euro, LastEventID: string(row[5]), LastEventAt: 1_767_225_600_000_000,
	}
	b.ReportAllocs()
	for b.Loop() {
		if a, err := accountRow(row); err != nil || a.Account != want {
			b.Fatal(a, err)
		}
	}
}
