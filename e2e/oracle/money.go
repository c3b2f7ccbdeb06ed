package oracle

import (
	"math/big"
	"regexp"
	"strings"
)

// digits are the decimals of the currencies a stream may use. Every other code is
// unsupported as far as the oracle goes, so streams keep to these and to codes that
// do not exist.
var digits = map[string]int{"EUR": 2, "USD": 2, "GBP": 2, "CHF": 2, "JPY": 0, "ISK": 0, "KWD": 3, "BHD": 3, "CLF": 4}

var decimal = regexp.MustCompile(`^(0|[1-9]\d*)(?:\.(\d+))?$`)

// minorUnits reads a decimal; nil when it breaks a rule.
func minorUnits(text string, decimals int) *big.Int {
	parts := decimal.FindStringSubmatch(text)
	if len(parts) == 0 || len(parts[2]) > decimals {
		return nil
	}
	minor, _ := new(big.Int).SetString(parts[1]+parts[2]+strings.Repeat("0", decimals-len(parts[2])), 10)
	if minor.Sign() <= 0 || !minor.IsInt64() {
		return nil
	}
	return minor
}

// decimalText writes minor units as PostgreSQL writes a numeric of that scale.
func decimalText(minor *big.Int, decimals int) string {
	return new(big.Rat).SetFrac(minor, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)).FloatString(decimals)
}
