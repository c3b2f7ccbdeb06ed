package event

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// Why a text is no amount. None of them carries the text.
var (
	errAmountForm      = errors.New("is not a plain decimal: digits without leading zeros, optionally a point and digits")
	errAmountPrecision = errors.New("has more fraction digits than its currency")
	errAmountNotAbove0 = errors.New("is not greater than zero")
	errAmountRange     = errors.New("does not fit 64-bit minor units")
)

// ParseAmount reads a decimal amount such as "10.25" and returns it in minor units
// of c, 1025. The amount is > 0, has no sign, exponent or leading zeros, and no
// more fraction digits than c has. The error says which rule is broken, never with
// the text.
func ParseAmount(text string, c Currency) (int64, error) {
	whole, fraction, hasPoint := strings.Cut(text, ".")
	if !isDigits(whole) || (len(whole) > 1 && whole[0] == '0') || (hasPoint && !isDigits(fraction)) {
		return 0, errAmountForm
	}
	if len(fraction) > c.Digits() {
		return 0, errAmountPrecision
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

// isDigits reports whether s is one or more ASCII digits.
func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// appendDigits returns n with the decimal digits written behind it, and whether
// the result fits.
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

// FormatAmount writes minor units of c as a decimal with exactly c.Digits()
// fraction digits: 1050 is "10.50" in EUR and "1050" in JPY, -5 is "-0.05" in EUR.
func FormatAmount(minor int64, c Currency) string {
	// 20 characters for the longest int64, a point, and leading zeros.
	return string(AppendAmount(make([]byte, 0, 32), minor, c))
}

// AppendAmount appends what FormatAmount returns to dst.
func AppendAmount(dst []byte, minor int64, c Currency) []byte {
	magnitude := uint64(minor) //nolint:gosec // G115: the sign is dealt with below
	if minor < 0 {
		dst = append(dst, '-')
		magnitude = -magnitude // two's complement: right for the smallest int64 too
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

// Add returns a + b and whether the sum fits; a sum that does not is 0.
func Add(a, b int64) (sum int64, ok bool) {
	sum = a + b
	if (b > 0 && sum < a) || (b < 0 && sum > a) {
		return 0, false
	}
	return sum, true
}
