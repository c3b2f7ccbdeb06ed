package event

import (
	_ "embed" // needed for go:embed
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ErrPrecision is returned for an amount or a balance with more fraction digits than its currency
// allows.
var ErrPrecision = errors.New("has more fraction digits than its currency")

// These errors say why a text is not an amount. They do not contain the text.
var (
	errAmountForm      = errors.New("is not a plain decimal: digits without leading zeros, optionally a point and digits")
	errAmountNotAbove0 = errors.New("is not greater than zero")
	errAmountRange     = errors.New("does not fit 64-bit minor units")
)

// ParseAmount reads a decimal amount and returns it in minor units of c. For example, "10.25" is
// 1025 in EUR. The amount must be > 0. It must not have a sign, an exponent, leading zeros, or more
// fraction digits than c has. The error does not contain the text.
func ParseAmount(text string, c Currency) (int64, error) {
	whole, fraction, hasPoint := strings.Cut(text, ".")
	if !isPlainDigits(whole) || hasPoint && !isDigits(fraction) {
		return 0, errAmountForm
	}
	if len(fraction) > c.Digits() {
		return 0, ErrPrecision
	}
	minor, fits := appendDigits(0, whole)
	if fits {
		minor, fits = appendDigits(minor, fraction)
	}
	for range c.Digits() - len(fraction) {
		if fits {
			minor, fits = appendDigits(minor, "0")
		}
	}
	switch {
	case !fits:
		return 0, errAmountRange
	case minor == 0:
		return 0, errAmountNotAbove0
	}
	return minor, nil
}

var errBalanceForm = errors.New("is not a plain decimal such as -12.50")

// ParseBalance reads a decimal balance and returns it in minor units of c. For example, "-10.5" is
// -1050 in EUR. The text may have extra zeros at the beginning and at the end. The error does not
// contain the text.
func ParseBalance(text string, c Currency) (int64, error) {
	digits := strings.TrimPrefix(text, "-")
	sign := text[:len(text)-len(digits)]
	whole, fraction, hasPoint := strings.Cut(digits, ".")
	if !isDigits(whole) || hasPoint && !isDigits(fraction) {
		return 0, errBalanceForm
	}
	fraction = strings.TrimRight(fraction, "0")
	missing := c.Digits() - len(fraction)
	if missing < 0 {
		return 0, ErrPrecision
	}
	minor, err := strconv.ParseInt(sign+whole+fraction+strings.Repeat("0", missing), 10, 64)
	if err != nil {
		return 0, errAmountRange
	}
	return minor, nil
}

// isDigits reports whether s is one or more ASCII digits.
func isDigits[T string | []byte](s T) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return len(s) > 0
}

// isPlainDigits reports whether s is one or more ASCII digits without leading zeros.
func isPlainDigits[T string | []byte](s T) bool { return isDigits(s) && (len(s) == 1 || s[0] != '0') }

// appendDigits returns n with the decimal digits appended, and reports whether the result fits.
func appendDigits(n int64, digits string) (_ int64, fits bool) {
	for i := range len(digits) {
		digit := int64(digits[i] - '0')
		if n > (math.MaxInt64-digit)/10 {
			return 0, false
		}
		n = n*10 + digit
	}
	return n, true
}

// FormatAmount returns minor units of c as a decimal with exactly c.Digits() fraction digits. For
// example, 1050 is "10.50" in EUR and "1050" in JPY, and -5 is "-0.05" in EUR.
func FormatAmount(minor int64, c Currency) string {
	return string(AppendAmount(make([]byte, 0, 32), minor, c))
}

// AppendAmount appends the text that FormatAmount returns to dst.
func AppendAmount(dst []byte, minor int64, c Currency) []byte {
	magnitude := uint64(minor) //nolint:gosec // G115: the sign is dealt with below
	if minor < 0 {
		dst = append(dst, '-')
		magnitude = -magnitude // two's complement, so it is also right for the smallest int64
	}
	var buf [20]byte
	digits := strconv.AppendUint(buf[:0], magnitude, 10)
	if c.Digits() == 0 {
		return append(dst, digits...)
	}
	point := len(digits) - c.Digits()
	if point <= 0 {
		dst = append(dst, '0', '.')
		for range -point {
			dst = append(dst, '0')
		}
		return append(dst, digits...)
	}
	dst = append(dst, digits[:point]...)
	dst = append(dst, '.')
	return append(dst, digits[point:]...)
}

// Add returns a + b and reports whether the sum fits. If it does not fit, the sum is 0.
func Add(a, b int64) (sum int64, ok bool) {
	sum = a + b
	if (b > 0 && sum < a) || (b < 0 && sum > a) {
		return 0, false
	}
	return sum, true
}

// Currency is an ISO 4217 currency. It contains the alphabetic code and the number of decimals of
// the minor unit. It can be compared with ==. The zero value means no currency.
type Currency struct {
	code   [3]byte
	digits uint8
}

// Code returns the alphabetic code, such as "EUR", or "" for the zero value.
func (c Currency) Code() string {
	if c.IsZero() {
		return ""
	}
	return string(c.code[:])
}

// Digits returns the number of decimals of an amount in this currency. For example, it returns 2
// for EUR, and 0 for JPY and for the zero value.
func (c Currency) Digits() int { return int(c.digits) }

// IsZero reports whether c is the zero value, which means no currency.
func (c Currency) IsZero() bool { return c == Currency{} }

// String returns the code.
func (c Currency) String() string { return c.Code() }

// CurrencyByCode returns the active ISO 4217 currency with the given alphabetic code. The code is
// case-sensitive, and only currencies with minor units are known.
func CurrencyByCode(code string) (Currency, bool) {
	c, ok := iso4217[code]
	return c, ok
}

// CurrencyByNumber returns the currency with the given numeric code of ISO 4217, such as 978 for
// EUR. A code that is written as text has three digits, such as 036 for AUD. One that is written as
// an integer has no zeros at its beginning.
func CurrencyByNumber(code []byte, written Written) (Currency, bool) {
	if written != WrittenInteger && len(code) != 3 {
		return Currency{}, false
	}
	n, err := strconv.ParseUint(string(code), 10, 16)
	if err != nil || n >= uint64(len(iso4217Numbers)) {
		return Currency{}, false
	}
	c := iso4217Numbers[n]
	return c, !c.IsZero()
}

//go:embed iso4217.tsv
var iso4217TSV string

// iso4217 maps an alphabetic code to its currency, and iso4217Numbers has the currency at the index
// that is its numeric code. They do not change after the start of the
// program. The project has its own table, because golang.org/x/text/currency misses some
// currencies, and for many currencies its number of decimals differs from ISO 4217.
var iso4217, iso4217Numbers = mustReadISO4217(iso4217TSV)

// mustReadISO4217 reads lines of code, numeric code, minor units and name. It panics if a line is
// malformed, because the table is part of the program.
func mustReadISO4217(tsv string) (byCode map[string]Currency, byNumber [1000]Currency) {
	byCode = make(map[string]Currency)
	for line := range strings.Lines(tsv) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 4 || len(fields[0]) != 3 {
			panic("event: malformed line in iso4217.tsv: " + line)
		}
		digits, err := strconv.ParseUint(fields[2], 10, 8)
		if err != nil {
			panic("event: malformed minor units in iso4217.tsv: " + line)
		}
		number, err := strconv.ParseUint(fields[1], 10, 16)
		if err != nil || len(fields[1]) != 3 {
			panic("event: malformed numeric code in iso4217.tsv: " + line)
		}
		c := Currency{code: [3]byte([]byte(fields[0])), digits: uint8(digits)}
		byCode[fields[0]], byNumber[number] = c, c
	}
	return byCode, byNumber
}

// CurrencySet is the set of currencies that a projection accepts. The zero value accepts every
// active ISO 4217 currency with minor units.
type CurrencySet struct {
	only map[string]Currency // nil means all
}

// ParseCurrencies reads "all" or a comma-separated list of alphabetic codes, for example "EUR,USD".
// The error contains the code that is not known.
func ParseCurrencies(list string) (CurrencySet, error) {
	if strings.TrimSpace(list) == "all" {
		return CurrencySet{}, nil
	}
	only := make(map[string]Currency)
	for item := range strings.SplitSeq(list, ",") {
		code := strings.TrimSpace(item)
		c, ok := CurrencyByCode(code)
		if !ok {
			return CurrencySet{}, fmt.Errorf(
				"currency %q is not an active ISO 4217 alphabetic code with minor units (want all, or a list such as EUR,USD)", code)
		}
		only[code] = c
	}
	return CurrencySet{only: only}, nil
}

// Lookup returns the currency for an alphabetic code, if the set contains the currency.
func (s CurrencySet) Lookup(code string) (Currency, bool) {
	if s.only == nil {
		return CurrencyByCode(code)
	}
	c, ok := s.only[code]
	return c, ok
}

// String returns "all" or the codes in alphabetical order, which ParseCurrencies accepts.
func (s CurrencySet) String() string {
	if s.only == nil {
		return "all"
	}
	return strings.Join(slices.Sorted(maps.Keys(s.only)), ",")
}

const (
	// maxUnscaled limits the bytes of an exact number. 32 bytes are enough for about 77 digits.
	// Without this limit, the time to decode a long number would grow with the square of its
	// length.
	maxUnscaled = 32
	maxScale    = 76
)

// appendDecimal appends a number as decimal text. The number is a big-endian two's complement
// integer. The parameter scale says how many of its last digits are the fraction. Zeros at the end
// of the fraction are left out. It returns false if the number exceeds a limit.
func appendDecimal(dst, unscaled []byte, scale int) (_ []byte, fits bool) {
	if len(unscaled) > maxUnscaled || scale > maxScale {
		return dst, false
	}
	var buffer [maxUnscaled]byte
	magnitude := buffer[:copy(buffer[:], unscaled)]
	if magnitude[0] >= 0x80 {
		negate(magnitude)
		dst = append(dst, '-')
	}
	start := len(dst)
	for digits := 0; digits <= scale || !isAll(0, magnitude); digits++ {
		if digits == scale && scale > 0 {
			dst = append(dst, '.')
		}
		dst = append(dst, '0'+divideBy10(magnitude))
	}
	slices.Reverse(dst[start:])
	if scale > 0 {
		for dst[len(dst)-1] == '0' {
			dst = dst[:len(dst)-1]
		}
		if dst[len(dst)-1] == '.' {
			dst = dst[:len(dst)-1]
		}
	}
	return dst, true
}

// negate changes the sign of a two's complement integer in place. For the smallest integer, the
// result is its magnitude as an unsigned number.
func negate(n []byte) {
	carry := true
	for i := len(n) - 1; i >= 0; i-- {
		n[i] = ^n[i]
		if carry {
			n[i]++
			carry = n[i] == 0
		}
	}
}

// divideBy10 divides a big-endian number by 10 in place and returns the remainder.
func divideBy10(n []byte) (remainder byte) {
	rest := uint16(0)
	for i, b := range n {
		rest = rest<<8 | uint16(b)
		n[i] = byte(rest / 10) //nolint:gosec // G115: rest is below 10 * 256
		rest %= 10
	}
	return byte(rest)
}

// isAll reports whether text contains no other byte than c.
func isAll(c byte, text []byte) bool {
	for _, b := range text {
		if b != c {
			return false
		}
	}
	return true
}
