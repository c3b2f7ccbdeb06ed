package mapping

import (
	"maps"
	"slices"
	"strings"

	"projector/projection/event"
)

// types proposes the meaning of each event type.
func (w *suggesting) types(kind, amount *sample) {
	if kind == nil {
		return
	}
	delete(kind.texts, "") // an empty text is not the name of a type
	if kind.kinds['n'] > 0 {
		delete(kind.texts, "null")
	}
	if len(kind.texts) == 0 {
		return
	}
	if isOp := plainName(kind.path) == "op"; isOp && kind.texts["c"] > 0 {
		kind.texts["r"]++
		w.decide("%s: r is a row that Debezium's snapshot has read. It usually means the same as c, a row that was inserted", kind.path)
	}
	names := slices.Sorted(maps.Keys(kind.texts))
	shown := slices.Clone(names)
	if !w.payload {
		shown = slices.DeleteFunc(shown, func(name string) bool { return !isTypeName(name) })
	}
	if hidden := len(names) - len(shown); hidden > 0 {
		w.decide("%d values of the event type do not look like names of types: --show-payload shows them", hidden)
	}
	if len(shown) > 0 {
		w.line("eventTypes:")
	}
	counted, moving := map[string]amountsOfType{}, 0 // moving is the number of types with amounts
	for _, name := range names {
		counted[name] = w.amounts(kind, amount, name)
		if counted[name].records > counted[name].without {
			moving++
		}
	}
	for _, name := range shown {
		seen := counted[name]
		switch {
		case seen.never() && (event.TypeNamed(name) == event.Unknown || event.TypeNamed(name).MovesMoney()):
			w.line("  %s: DECIDE", quoteYAML(name))
			w.decide("%s: none of its %d samples has an amount, so it moves no money. %s or %s?", quoteYAML(name), seen.records, typesWithAmount(false), ignored)
		case event.TypeNamed(name) != event.Unknown:
			w.line("  %s: %s", name, name)
		case plainName(kind.path) == "op" && slices.Contains([]string{"u", "d", "t"}, name):
			w.line("  %s: DECIDE", name)
			w.decide("%s: Debezium writes it for rows that were changed or removed (u, d, t). Rows of a ledger do not change: if it is no event, ignored", name)
		case amount != nil && amount.isNegative():
			w.signed(name, seen, moving > 1)
		default:
			w.line("  %s: DECIDE", quoteYAML(name))
			w.decide("%s: %s or %s?", quoteYAML(name), typeList(), ignored)
		}
	}
	if len(kind.texts) == mostTexts {
		w.decide("there may be more types than these %d", mostTexts)
	}
}

// amountsOfType counts the stored records of an event type by their amounts.
type amountsOfType struct{ records, without, zero, positive int }

// never reports whether there are records of the type and none of them has an amount.
func (a amountsOfType) never() bool { return a.records > 0 && a.without == a.records }

// amounts returns what the records of a type have as amount. It returns nothing if no record has one.
func (w *suggesting) amounts(kind, amount *sample, name string) (seen amountsOfType) {
	if amount == nil {
		return seen
	}
	for _, row := range w.rows {
		if is, given := row[kind.path]; !given || is != name {
			continue
		}
		seen.records++
		switch text := row[amount.path]; {
		case text == "":
			seen.without++
		case strings.Trim(text, "-0.") == "":
			seen.zero++
		case text[0] != '-':
			seen.positive++
		}
	}
	return seen
}

// signed proposes a type whose amounts have signs, and leaves open what the samples contradict. If
// other types have amounts too (the parameter several), an amount above zero may be a debit.
func (w *suggesting) signed(name string, seen amountsOfType, several bool) {
	if several && seen.positive > 0 {
		w.line("  %s: DECIDE", quoteYAML(name))
		w.decide("%s: %d of its %d samples are above zero, and other types have amounts too. Does the sign alone say what an amount is: "+
			"{positive: FundsCredited, negative: FundsDebited, zero: refused}? Or is it a debit, which a negative amount takes back: "+
			"{positive: FundsDebited, negative: FundsCredited, zero: refused}?", quoteYAML(name), seen.positive, seen.records)
		return
	}
	zero := "refused"
	if seen.zero > 0 {
		zero = "DECIDE"
		w.decide("%s: %d of its %d samples have the amount 0. zero: %s, or refused (they become dead letters)?", quoteYAML(name), seen.zero, seen.records, ignored)
	}
	if seen.without > 0 {
		w.decide("%s: %d of its %d samples have no amount, and each credit and debit needs one", quoteYAML(name), seen.without, seen.records)
	}
	w.line("  %s: {positive: FundsCredited, negative: FundsDebited, zero: %s}", quoteYAML(name), zero)
}

// isTypeName reports whether a text looks like the name of a type. Such a text is one word that
// begins with a letter and has few digits. The rule is meant to exclude data about a person or an
// account.
func isTypeName(text string) bool {
	const mostBytes, mostDigits = 60, 2
	digits := 0
	for i, c := range text {
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		case i > 0 && c >= '0' && c <= '9':
			digits++
		case i > 0 && strings.ContainsRune("_-./:", c):
		default:
			return false
		}
	}
	return text != "" && len(text) <= mostBytes && digits <= mostDigits
}

// anyOf returns the first of the texts in alphabetical order.
func anyOf(texts map[string]int) string {
	all := slices.Sorted(maps.Keys(texts))
	if len(all) == 0 {
		return ""
	}
	return all[0]
}
