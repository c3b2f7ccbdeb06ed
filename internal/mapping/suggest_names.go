package mapping

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"projector/projection/event"
)

// guess contains the names by which a field is found among the samples. In each list, the best
// names come first. All names are in lower case, without _ and -.
type guess struct {
	field event.Field
	names []string // complete names of a member
	ends  []string // last words of a member's name
	weak  []string // names that count only if nothing else fits
	fits  func(*sample) bool
}

func isNumberOrText(p *sample) bool { return p.hasKind('0') || p.hasKind('"') }

func isTextual(p *sample) bool { return p.hasKind('"') }

// isTime reports whether the values of a path may be times. These are numbers counted from 1970, or
// texts that begin with a year.
func isTime(p *sample) bool {
	text := anyOf(p.texts)
	if !isNumberOrText(p) || len(text) < len("20260101") {
		return false
	}
	return !strings.ContainsFunc(text[:4], func(c rune) bool { return c < '0' || c > '9' })
}

var accountNames = []string{
	"accountid", "account", "acct", "accountno", "accountnumber", "acctid", "acctno", "acctnumber", "iban", "walletid", "wallet",
	"customer", "customerid", "aggregateid", "subject",
}

func isAccount(path string) bool { return slices.Contains(accountNames, plainName(path)) }

func parentOf(path string) string { return path[:max(0, strings.LastIndexByte(path, '.'))] }

var guesses = []guess{
	{
		field: event.FieldEventID, fits: func(p *sample) bool { return isNumberOrText(p) && !isAccount(parentOf(p.path)) },
		names: []string{"eventid", "messageid", "msgid", "id", "uuid", "txid", "txnid", "transactionid", "entryid", "reference", "ntryref"},
		ends:  []string{"eventid", "uuid", "txid", "txnid", "transactionid", "reference", "ref"},
		weak:  []string{"eventuid", "uid"}, // some producers use it for a user
	},
	{
		field: event.FieldAccountID, fits: isNumberOrText,
		names: accountNames,
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
		names: []string{"occurredat", "occurred", "timestamp", "time", "ts", "created", "createdat", "eventtime", "bookedat", "booked", "posted", "happened", "date"},
		ends:  []string{"at", "timestamp", "time", "dttm", "date", "dt"},
		weak:  []string{"tsms"}, // the time at which a connector read the row
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
		field: event.FieldCurrency, fits: isNumberOrText,
		names: []string{"currency", "ccy", "currencycode", "iso"},
		ends:  []string{"currency", "ccy", "currencycode"},
	},
}

// unitWords are units that may follow a name, as in posted_at_ms or amount_cents.
var unitWords = []string{"s", "ms", "us", "ns", "millis", "micros", "minor", "cents"}

// wordsOf returns the words of a path's last element, in lower case.
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

// plainName returns the last element of a path in lower case, without _ and -.
func plainName(path string) string { return strings.Join(wordsOf(path), "") }

// endsWith reports whether the last words of a path's last element form the given name.
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

// isNamed reports whether the field can be found by the last element of the path.
func (g *guess) isNamed(path string) bool {
	return slices.Contains(g.names, plainName(path)) || slices.ContainsFunc(g.ends, func(name string) bool { return endsWith(path, name) })
}

// idWords are words with which the names of ids end.
var idWords = []string{"id", "no", "nr", "number", "ref", "key", "code"}

// distinct returns the first path that may be the event id although its name is not known. The last
// word of its name is one of idWords, and none of its stored values was seen twice. A path of the
// record itself is preferred to a path of an entry. It returns nil if there is no such path.
func distinct(all map[string]*sample) *sample {
	var found *sample
	for _, path := range slices.Sorted(maps.Keys(all)) {
		p, words := all[path], wordsOf(path)
		isKnown := slices.ContainsFunc(guesses, func(g guess) bool { return g.isNamed(path) })
		isID := len(words) > 0 && slices.Contains(idWords, words[len(words)-1])
		if !isID || isKnown || p.seen < 2 || p.repeats() || !guesses[0].fits(p) {
			continue
		}
		if found == nil || p.outer && !found.outer {
			found = p
		}
	}
	return found
}

// accountObject returns the members of an account object that may be parts of the account id, in a
// likely order. An account object is an object whose name is in accountNames, for example account
// or wallet. The comparison is in lower case, without _ and -. The result may be empty.
func accountObject(all map[string]*sample) []*sample {
	var parts []*sample
	for _, path := range slices.Sorted(maps.Keys(all)) {
		p, name := all[path], plainName(path)
		isPart := slices.Contains(accountParts, name) || slices.Contains(idWords, name) || isAccount(path)
		if !isPart || !isAccount(parentOf(path)) || !isNumberOrText(p) || len(parts) > 0 && parentOf(parts[0].path) != parentOf(path) {
			continue
		}
		parts = append(parts, p)
	}
	slices.SortStableFunc(parts, func(a, b *sample) int {
		return strings.Compare(rankOf(a), rankOf(b))
	})
	return parts
}

// rankOf returns a text by which parts are sorted. The parts in accountParts, such as the bank,
// come before the other parts, such as the account number.
func rankOf(p *sample) string {
	if slices.Contains(accountParts, plainName(p.path)) {
		return "a"
	}
	return "b"
}

// withoutConnector removes the paths of Debezium's source block and of the row's former values, if
// Debezium wrote the records.
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

// unused writes a comment with the paths that the proposal does not read.
func (w *suggesting) unused() {
	const most = 30
	var names []string
	for _, path := range slices.Sorted(maps.Keys(w.values)) {
		if !w.taken[path] {
			_, alone := w.values[path].source()
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
