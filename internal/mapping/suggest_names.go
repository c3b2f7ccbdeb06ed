package mapping

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"projector/projection/event"
)

// guess has the names by which a field is found among samples, the best first. They are in small
// letters, without _ and -.
type guess struct {
	field event.Field
	names []string // of a member
	ends  []string // last words of a member's name
	weak  []string // names that count only if nothing else fits
	fits  func(*sample) bool
}

func isNumberOrText(p *sample) bool { return p.is('0') || p.is('"') }

func isTextual(p *sample) bool { return p.is('"') }

// isTime reports whether the path may have times: counts from 1970, or texts that begin with a year.
func isTime(p *sample) bool {
	text := anyOf(p.texts)
	if !isNumberOrText(p) || len(text) < len("20260101") {
		return false
	}
	return !strings.ContainsFunc(text[:4], func(c rune) bool { return c < '0' || c > '9' })
}

var guesses = []guess{
	{
		field: event.FieldEventID, fits: isNumberOrText,
		names: []string{"eventid", "messageid", "msgid", "id", "uuid", "txid", "txnid", "transactionid", "entryid", "reference", "ntryref"},
		ends:  []string{"eventid", "uuid", "txid", "txnid", "transactionid", "reference", "ref"},
	},
	{
		field: event.FieldAccountID, fits: isNumberOrText,
		names: []string{"accountid", "account", "acct", "accountno", "accountnumber", "iban", "walletid", "wallet", "customer", "aggregateid", "subject"},
		ends:  []string{"accountid", "account", "acct", "accountno", "iban", "wallet", "walletid"},
	},
	{
		field: event.FieldVersion, fits: isNumberOrText,
		names: []string{"version", "seq", "sequence", "seqno", "seqnb", "sequencenumber", "revision", "lineno", "position"},
		ends:  []string{"version", "seq", "sequence", "seqno", "revision"},
	},
	{
		field: event.FieldEventType, fits: isNumberOrText,
		names: []string{"eventtype", "type", "kind", "eventname", "operation", "direction", "cdtdbtind", "creditdebitindicator", "debitcreditindicator", "side", "drcr", "op"},
		ends:  []string{"eventtype", "type", "kind"},
	},
	{
		field: event.FieldOccurredAt, fits: isTime,
		names: []string{"occurredat", "timestamp", "time", "ts", "created", "createdat", "eventtime", "bookedat", "date"},
		ends:  []string{"at", "timestamp", "time", "dttm", "date", "dt"},
		weak:  []string{"tsms"}, // when a connector read it
	},
	{
		field: event.FieldCorrelationID, fits: isTextual,
		names: []string{"correlationid", "traceid", "requestid"},
	},
	{
		field: event.FieldAmount, fits: isNumberOrText,
		names: []string{"amount", "amt", "value", "cents", "amountminor", "units", "sum"},
		ends:  []string{"amount", "amt"},
	},
	{
		field: event.FieldCurrency, fits: isTextual,
		names: []string{"currency", "ccy", "currencycode", "iso"},
		ends:  []string{"currency", "ccy", "currencycode"},
	},
}

// unitWords may follow a name: posted_at_ms, amount_cents.
var unitWords = []string{"s", "ms", "us", "ns", "millis", "micros", "minor", "cents"}

// wordsOf are the words of a path's last name, in small letters.
func wordsOf(path string) []string {
	name := path[strings.LastIndexByte(path, '.')+1:]
	var words strings.Builder
	last := ' '
	for _, c := range name {
		if c == '_' || c == '-' || unicode.IsUpper(c) && unicode.IsLower(last) {
			words.WriteByte(' ')
		}
		if last = c; c != '_' && c != '-' {
			words.WriteRune(unicode.ToLower(c))
		}
	}
	return strings.Fields(words.String())
}

// plainName returns the last name of a path, written as in guesses.
func plainName(path string) string { return strings.Join(wordsOf(path), "") }

// endsWith reports whether the last words of a path's last name are this name.
func endsWith(path, name string) bool {
	words := wordsOf(path)
	if n := len(words); n > 1 && slices.Contains(unitWords, words[n-1]) {
		words = words[:n-1]
	}
	for i := range words {
		if strings.Join(words[i:], "") == name {
			return true
		}
	}
	return false
}

// find returns the sample with the best name, or nil.
func (g *guess) find(all map[string]*sample, taken map[string]bool) *sample {
	paths := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		if n := strings.Count(a, ".") - strings.Count(b, "."); n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
	isName := func(path, name string) bool { return plainName(path) == name }
	for _, by := range []struct {
		names   []string
		matches func(path, name string) bool
	}{{g.names, isName}, {g.ends, endsWith}, {g.weak, isName}} {
		for _, name := range by.names {
			for _, path := range paths {
				if by.matches(path, name) && !taken[path] && g.fits(all[path]) {
					return all[path]
				}
			}
		}
	}
	return nil
}

// withoutConnector leaves out what Debezium writes about itself and about the row's former values.
func withoutConnector(all map[string]*sample) map[string]*sample {
	rest := maps.Clone(all)
	for _, prefix := range []string{"", "payload."} {
		if all[prefix+"source.connector"] == nil {
			continue
		}
		maps.DeleteFunc(rest, func(path string, _ *sample) bool {
			return strings.HasPrefix(path, prefix+"source.") || path == prefix+"before" || strings.HasPrefix(path, prefix+"before.")
		})
	}
	return rest
}

// unused names the paths that the proposal does not read.
func (w *suggesting) unused(all map[string]*sample, taken map[string]bool) {
	const most = 30
	var names []string
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if !taken[path] {
			_, alone := all[path].source()
			names = append(names, alone)
		}
	}
	switch {
	case len(names) == 0:
	case len(names) > most:
		w.line("  # Not used: %s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	default:
		w.line("  # Not used: %s", strings.Join(names, ", "))
	}
}
