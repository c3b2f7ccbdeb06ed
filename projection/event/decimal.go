package event

import "slices"

const (
	// maxUnscaled bounds the bytes of an exact number: 2^255 has 77 digits, more than
	// any database's money. Without a bound, a long one would cost its length squared.
	maxUnscaled = 32
	maxScale    = 76
)

// appendDecimal writes a big-endian two's complement integer with a point before its
// last scale digits, without zeros at the end of the fraction. It reports false for a
// number that is beyond all money.
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
	for digits := 0; digits <= scale || !isZero(magnitude); digits++ {
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

// negate changes the sign of a two's complement integer in place; of the smallest one
// it leaves the magnitude.
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

// divideBy10 divides a big-endian number in place and returns the remainder.
func divideBy10(n []byte) (remainder byte) {
	rest := uint16(0)
	for i, b := range n {
		rest = rest<<8 | uint16(b)
		n[i] = byte(rest / 10) //nolint:gosec // G115: rest is below 10 * 256
		rest %= 10
	}
	return byte(rest)
}

func isZero(n []byte) bool {
	for _, b := range n {
		if b != 0 {
			return false
		}
	}
	return true
}
