package testbank

import (
	"bytes"
	"encoding/json"
	"io"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// decoded is the result of decoding one record: an event, an error class, or neither for a record
// without effect (a tombstone or skip). The field identified means that id, account and version
// were read.
type decoded struct {
	tombstone, skip, identified bool

	id, account, correlation, kind string

	version  int64
	at       time.Time
	amount   *big.Int // in minor units; nil for an event without an amount
	currency string   // "" for an event without a currency

	class string
}

const malformed = "malformed_payload"

// Classify decodes a record without the state of its account. It returns whether account and
// version can be read, whether the record is ignored in any case, and its error class.
func (o *Oracle) Classify(r *Record) (identified, ignored bool, class string) {
	d := o.decode(r)
	return d.identified, d.tombstone || d.skip, d.class
}

func (o *Oracle) decode(r *Record) decoded {
	if r.Value == nil {
		return decoded{tombstone: true}
	}
	var d decoded
	fields, ok := parseObject(r.Value)
	d.correlation = correlation(fields, r.Headers)
	if !ok {
		d.class = malformed
		return d
	}
	d.kind, _ = fields["eventType"].(string)
	d.identify(fields, o.FirstVersion)
	ignorable := o.Ignore[d.kind]
	if !d.identified {
		if d.skip = ignorable; !d.skip {
			d.class = malformed
		}
		return d
	}
	d.class = d.readRest(fields, ignorable)
	return d
}

func (d *decoded) identify(fields map[string]any, first int64) {
	id, okID := identifier(fields["eventId"])
	account, okAccount := identifier(fields["accountId"])
	number, _ := fields["version"].(json.Number)
	version, err := strconv.ParseInt(number.String(), 10, 64)
	d.id, d.account, d.version = id, account, version
	d.identified = okID && okAccount && err == nil && version >= first
}

// readRest reads the fields other than id, account and version, and returns the error class.
func (d *decoded) readRest(fields map[string]any, ignorable bool) string {
	at, ok := instant(fields["occurredAt"])
	_, isText := fields["eventType"].(string)
	if d.at = at; !ok || !isText || !optionalText(fields["correlationId"]) {
		return malformed
	}
	data, isObject := fields["data"].(map[string]any)
	switch d.kind {
	case "FundsCredited", "FundsDebited":
		return d.readFunds(data)
	case "AccountOpened":
		if _, isText := data["currency"].(string); !isText {
			return malformed
		}
		return d.readCurrency(data)
	case "AccountClosed":
		if fields["data"] != nil && !isObject {
			return malformed
		}
		if data["currency"] == nil {
			return ""
		}
		return d.readCurrency(data)
	}
	if ignorable {
		return ""
	}
	return "unknown_event_type"
}

func (d *decoded) readFunds(data map[string]any) string {
	text, isText := data["amount"].(string)
	if !isText {
		return malformed
	}
	if class := d.readCurrency(data); class != "" {
		return class
	}
	d.amount = minorUnits(text, digits[d.currency])
	if d.amount == nil {
		return "invalid_amount"
	}
	return ""
}

func (d *decoded) readCurrency(data map[string]any) string {
	code, isText := data["currency"].(string)
	if !isText {
		return malformed
	}
	if _, known := digits[code]; !known {
		return "unsupported_currency"
	}
	d.currency = code
	return ""
}

func identifier(field any) (string, bool) {
	text, isText := field.(string)
	return text, isText && text != "" && len(text) <= 200 && !strings.ContainsRune(text, 0)
}

func optionalText(field any) bool {
	_, isText := field.(string)
	return field == nil || isText
}

var rfc3339 = regexp.MustCompile(`^(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:)(\d\d)((?:\.\d+)?)([Zz]|[+-]\d\d:\d\d)$`)

// instant parses a time. A leap second is accepted at the end of a month only, and becomes the last
// microsecond of its day.
func instant(field any) (time.Time, bool) {
	text, _ := field.(string)
	parts := rfc3339.FindStringSubmatch(text)
	if len(parts) == 0 {
		return time.Time{}, false
	}
	leap := parts[2] == "60"
	if leap {
		parts[2], parts[3] = "59", ".999999"
	}
	at, err := time.Parse(time.RFC3339Nano, strings.ToUpper(parts[1]+parts[2]+parts[3]+parts[4]))
	at = at.UTC().Truncate(time.Microsecond)
	if after := at.Add(time.Microsecond); leap && (after.Day() != 1 || after.Hour() != 0 || after.Minute() != 0) {
		return time.Time{}, false
	}
	return at, err == nil
}

func correlation(fields map[string]any, headers []Header) string {
	if text, _ := fields["correlationId"].(string); text != "" {
		return text
	}
	for _, name := range []string{"correlationId", "correlation_id"} {
		for _, h := range headers {
			if h.Key == name {
				if len(h.Value) > 0 {
					return string(h.Value)
				}
				break
			}
		}
	}
	return ""
}

// parseObject parses one JSON object strictly. encoding/json alone would replace invalid UTF-8 and
// lone surrogates and would accept a key twice.
func parseObject(value []byte) (map[string]any, bool) {
	if !utf8.Valid(value) || !json.Valid(value) || loneSurrogate(value) {
		return nil, false
	}
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	tree, ok := parseValue(dec)
	if !ok {
		return nil, false
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, false
	}
	object, isObject := tree.(map[string]any)
	return object, isObject
}

func parseValue(dec *json.Decoder) (any, bool) {
	token, err := dec.Token()
	if err != nil {
		return nil, false
	}
	switch token {
	case json.Delim('{'):
		return parseMembers(dec)
	case json.Delim('['):
		for dec.More() {
			if _, ok := parseValue(dec); !ok {
				return nil, false
			}
		}
		_, err := dec.Token()
		return []any{}, err == nil
	}
	return token, true
}

func parseMembers(dec *json.Decoder) (any, bool) {
	members := map[string]any{}
	for dec.More() {
		token, err := dec.Token()
		key, isText := token.(string)
		if _, twice := members[key]; err != nil || !isText || twice {
			return nil, false
		}
		value, ok := parseValue(dec)
		if !ok {
			return nil, false
		}
		members[key] = value
	}
	_, err := dec.Token()
	return members, err == nil
}

var surrogates = regexp.MustCompile(`\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\.`)

// loneSurrogate reports whether valid JSON contains half of a surrogate pair.
func loneSurrogate(value []byte) bool {
	for _, escape := range surrogates.FindAll(value, -1) {
		if len(escape) == len(`\ud800`) {
			return true
		}
	}
	return false
}

// digits has the number of decimals of each currency that a stream may use. The oracle treats every
// other code as unsupported, so streams use only these currencies and codes that do not exist.
var digits = map[string]int{"EUR": 2, "USD": 2, "GBP": 2, "CHF": 2, "JPY": 0, "ISK": 0, "KWD": 3, "BHD": 3, "CLF": 4, RefusedCurrency: 2}

// decimalsOf returns the number of decimals in amounts of a currency, which may not exist.
func decimalsOf(currency string) int {
	if n, known := digits[currency]; known {
		return n
	}
	return 2
}

var decimal = regexp.MustCompile(`^(0|[1-9]\d*)(?:\.(\d+))?$`)

// minorUnits parses a decimal text. It returns nil if the text is invalid.
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

// decimalText formats minor units as PostgreSQL formats a numeric of that scale.
func decimalText(minor *big.Int, decimals int) string {
	return new(big.Rat).SetFrac(minor, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)).FloatString(decimals)
}
