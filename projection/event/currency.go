package event

import (
	_ "embed" // for the ISO 4217 table
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Currency is an ISO 4217 currency: its alphabetic code and how many decimals its
// minor unit has. It is a small comparable value; the zero value means none.
type Currency struct {
	code   [3]byte
	digits uint8
}

// Code returns the alphabetic code, "EUR", or "" for the zero value.
func (c Currency) Code() string {
	if c.IsZero() {
		return ""
	}
	return string(c.code[:])
}

// Digits returns the number of decimals of an amount in this currency: 2 for EUR,
// 0 for JPY and for the zero value.
func (c Currency) Digits() int { return int(c.digits) }

// IsZero reports whether c is no currency.
func (c Currency) IsZero() bool { return c == Currency{} }

// String returns the code.
func (c Currency) String() string { return c.Code() }

// CurrencyByCode finds an active ISO 4217 currency with minor units by its
// alphabetic code, which is case-sensitive.
func CurrencyByCode(code string) (Currency, bool) {
	c, ok := iso4217[code]
	return c, ok
}

//go:embed iso4217.tsv
var iso4217TSV string

// iso4217 maps an alphabetic code to its currency. It is never written after
// start. The table is our own because golang.org/x/text/currency has other
// decimals than ISO 4217 for many currencies and misses some.
var iso4217 = mustReadISO4217(iso4217TSV)

// mustReadISO4217 reads lines of code, numeric code, minor units and name. It
// panics on a malformed line: the table is part of the program.
func mustReadISO4217(tsv string) map[string]Currency {
	table := make(map[string]Currency)
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
		table[fields[0]] = Currency{code: [3]byte([]byte(fields[0])), digits: uint8(digits)}
	}
	return table
}

// CurrencySet is the set of currencies a projection accepts. The zero value
// accepts every active ISO 4217 currency with minor units.
type CurrencySet struct {
	only map[string]Currency // nil: all
}

// ParseCurrencies reads "all" or a comma-separated list of alphabetic codes, for
// example "EUR,USD". Its error names the code that is not known.
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

// Lookup returns the currency of an alphabetic code, if the set has it.
func (s CurrencySet) Lookup(code string) (Currency, bool) {
	if s.only == nil {
		return CurrencyByCode(code)
	}
	c, ok := s.only[code]
	return c, ok
}

// String returns what ParseCurrencies reads: "all", or the codes in order.
func (s CurrencySet) String() string {
	if s.only == nil {
		return "all"
	}
	return strings.Join(slices.Sorted(maps.Keys(s.only)), ",")
}
