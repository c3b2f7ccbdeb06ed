package event_test

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"projector/projection/event"
)

func currency(t interface{ Fatalf(string, ...any) }, code string) event.Currency {
	c, ok := event.CurrencyByCode(code)
	if !ok {
		t.Fatalf("no currency %q", code)
	}
	return c
}

func TestParseAmount(t *testing.T) {
	tests := []struct {
		text, code string
		want       int64 // 0 means an error
	}{
		{"10.25", "EUR", 1025},
		{"10.2", "EUR", 1020},
		{"10", "EUR", 1000},
		{"10.00", "EUR", 1000},
		{"10.000", "EUR", 0},
		{"10.001", "EUR", 0},
		{"0.01", "EUR", 1},
		{"0.001", "EUR", 0},
		{"0.00", "EUR", 0},
		{"0", "EUR", 0},
		{"0", "JPY", 0},
		{"1050", "JPY", 1050},
		{"1050.0", "JPY", 0},
		{"1050.", "JPY", 0},
		{"1.234", "KWD", 1234},
		{"1.2345", "KWD", 0},
		{"0.0001", "CLF", 1},
		{"0.00001", "CLF", 0},
		{"010", "EUR", 0},
		{"00.10", "EUR", 0},
		{"00", "EUR", 0},
		{".5", "EUR", 0},
		{"5.", "EUR", 0},
		{".", "EUR", 0},
		{"", "EUR", 0},
		{"1.2.3", "EUR", 0},
		{"-1.00", "EUR", 0},
		{"+1.00", "EUR", 0},
		{"1e3", "EUR", 0},
		{"1E3", "EUR", 0},
		{"1,000.00", "EUR", 0},
		{"1 000", "EUR", 0},
		{" 1", "EUR", 0},
		{"1 ", "EUR", 0},
		{"1_000", "EUR", 0},
		{"0x10", "EUR", 0},
		{"NaN", "EUR", 0},
		{"Infinity", "EUR", 0},
		{"١", "EUR", 0}, // a digit that is not ASCII
		{"92233720368547758.07", "EUR", math.MaxInt64},
		{"92233720368547758.08", "EUR", 0},
		{"92233720368547758", "EUR", math.MaxInt64 - 7},
		{"92233720368547759", "EUR", 0},
		{"9223372036854775807", "JPY", math.MaxInt64},
		{"9223372036854775808", "JPY", 0},
		{"9223372036854775.807", "KWD", math.MaxInt64},
		{"9223372036854775.808", "KWD", 0},
		{"18446744073709551617", "JPY", 0}, // 2^64 + 1
		{strings.Repeat("9", 1000), "EUR", 0},
	}
	for _, tt := range tests {
		got, err := event.ParseAmount(tt.text, currency(t, tt.code))
		if got != tt.want || (err == nil) != (tt.want > 0) {
			t.Errorf("ParseAmount(%q, %s) = %d, %v; want %d", tt.text, tt.code, got, err, tt.want)
		}
		if err != nil && tt.text != "" && strings.ContainsAny(tt.text, "123456789") && strings.Contains(err.Error(), tt.text) {
			t.Errorf("the error of %q carries it: %v", tt.text, err)
		}
	}
}

func TestFormatAmount(t *testing.T) {
	tests := []struct {
		minor int64
		code  string
		want  string
	}{
		{1050, "EUR", "10.50"},
		{1050, "JPY", "1050"},
		{1050, "KWD", "1.050"},
		{1050, "CLF", "0.1050"},
		{0, "EUR", "0.00"},
		{0, "JPY", "0"},
		{5, "EUR", "0.05"},
		{-5, "EUR", "-0.05"},
		{-100, "EUR", "-1.00"},
		{-1050, "JPY", "-1050"},
		{math.MaxInt64, "EUR", "92233720368547758.07"},
		{math.MinInt64, "EUR", "-92233720368547758.08"},
		{math.MinInt64, "JPY", "-9223372036854775808"},
	}
	for _, tt := range tests {
		if got := event.FormatAmount(tt.minor, currency(t, tt.code)); got != tt.want {
			t.Errorf("FormatAmount(%d, %s) = %s, want %s", tt.minor, tt.code, got, tt.want)
		}
	}
	if got := event.FormatAmount(0, event.Currency{}); got != "0" {
		t.Errorf("without a currency 0 reads %q", got)
	}
}

// anyCurrency draws one of four currencies with different numbers of digits.
var anyCurrency = rapid.SampledFrom([]string{"JPY", "EUR", "KWD", "CLF"})

// minorUnits returns the value of a decimal text multiplied by 10^digits, computed with math/big.
// It returns nil if the result is not an integer.
func minorUnits(text string, digits int) *big.Int {
	rat, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil
	}
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil)
	if rat.Mul(rat, new(big.Rat).SetInt(scale)); !rat.IsInt() {
		return nil
	}
	return rat.Num()
}

func TestAmountRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := currency(t, anyCurrency.Draw(t, "currency"))
		minor := rapid.Int64().Draw(t, "minor")
		text := event.FormatAmount(minor, c)
		if got := minorUnits(text, c.Digits()); got == nil || got.Cmp(big.NewInt(minor)) != 0 {
			t.Fatalf("FormatAmount(%d, %s) = %s", minor, c, text)
		}
		if _, fraction, _ := strings.Cut(text, "."); len(fraction) != c.Digits() {
			t.Fatalf("%s has not the %d decimals of %s", text, c.Digits(), c)
		}
		got, err := event.ParseAmount(text, c)
		switch {
		case minor > 0 && (err != nil || got != minor):
			t.Fatalf("ParseAmount(%s, %s) = %d, %v; want %d", text, c, got, err, minor)
		case minor <= 0 && err == nil:
			t.Fatalf("ParseAmount accepts %s", text)
		}
	})
}

func TestParseAmountAgainstBig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := currency(t, anyCurrency.Draw(t, "currency"))
		text := rapid.StringMatching(`(0|[1-9][0-9]{0,21})(\.[0-9]{1,6})?`).Draw(t, "text")
		_, fraction, _ := strings.Cut(text, ".")
		want := minorUnits(text, c.Digits())
		valid := len(fraction) <= c.Digits() && want.Sign() > 0 && want.IsInt64()
		got, err := event.ParseAmount(text, c)
		if valid != (err == nil) || (valid && got != want.Int64()) {
			t.Fatalf("ParseAmount(%s, %s) = %d, %v; by math/big %v, valid: %v", text, c, got, err, want, valid)
		}
	})
}

func TestParseBalanceAgainstBig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := currency(t, anyCurrency.Draw(t, "currency"))
		text := rapid.OneOf(
			rapid.StringMatching(`-?0{0,2}[0-9]{1,22}(\.[0-9]{1,3}0{0,3})?`),
			rapid.Map(rapid.SampledFrom([]int64{math.MinInt64, -1, 0, math.MaxInt64}), func(minor int64) string { return event.FormatAmount(minor, c) }),
		).Draw(t, "text")
		want := minorUnits(text, c.Digits())
		got, err := event.ParseBalance(text, c)
		if valid := want != nil && want.IsInt64(); valid != (err == nil) || valid && got != want.Int64() {
			t.Fatalf("ParseBalance(%s, %s) = %d, %v; by math/big %v", text, c, got, err, want)
		}
	})
	for _, text := range []string{"", "-", "+1", "1.", ".5", "1e3", "1,5", " 1", "NaN"} {
		if got, err := event.ParseBalance(text, currency(t, "EUR")); err == nil {
			t.Errorf("%q is taken for %d", text, got)
		}
	}
}

func TestCheckedArithmetic(t *testing.T) {
	edges := []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, math.MaxInt64 - 1, math.MaxInt64}
	operand := rapid.OneOf(rapid.SampledFrom(edges), rapid.Int64())
	rapid.Check(t, func(t *rapid.T) {
		a, b := operand.Draw(t, "a"), operand.Draw(t, "b")
		sum, ok := event.Add(a, b)
		want := new(big.Int).Add(big.NewInt(a), big.NewInt(b))
		if ok != want.IsInt64() || (ok && sum != want.Int64()) || (!ok && sum != 0) {
			t.Fatalf("%d + %d gives %d, %v; want %v", a, b, sum, ok, want)
		}
	})
}
