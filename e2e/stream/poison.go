package stream

import "strings"

// poison is an event that can be told which account and version it has and that
// cannot be applied.
func (g *generator) poison(a *account, version int64) event {
	e := g.event(a, version)
	e.Kind, e.Data = "FundsCredited", g.money(a.currency)
	switch g.rnd.IntN(12) {
	case 0:
		e.Kind = "FundsTeleported"
	case 1:
		e.Kind = "fundscredited"
	case 2:
		e.Data["amount"] = 10.25
	case 3:
		e.Data["amount"] = pick[any](g, nil, true, []string{"1"})
	case 4:
		e.Data["amount"] = pick(g, "-1", "+1", "1e3", "01", "0", "0.000", "1.", ".5", " 1", "1 ", "1,00", "", "١", "NaN")
	case 5:
		e.Data["amount"] = pick(g, "1.00001", "9223372036854775808", "922337203685477580800")
	case 6:
		e.Data["currency"] = pick(g, "eur", "EURO", "XXX", "", "ZZZ", "DEM")
	case 7:
		e.Data["currency"] = pick[any](g, nil, 978)
	case 8:
		e.At = pick(g, "yesterday", "2026-01-01", "2026-01-01T00:00:00", "2026-02-30T00:00:00Z", "2026-01-01 00:00:00Z", "")
	case 9:
		e.Data = nil
	case 10:
		if version == 1 { // fixes the currency, so no mismatch
			e.Kind = ""
			break
		}
		e.Data = g.money(other(a.currency))
	default:
		e.Kind = ""
	}
	return e
}

// noise is a record that changes no account.
func (g *generator) noise(a *account) {
	r := g.record(a, g.event(a, a.next))
	text := string(r.Value)
	switch g.rnd.IntN(12) {
	case 0, 1:
		r.Value = nil
	case 2:
		r.Value = []byte{}
	case 3:
		r.Value = []byte(text[:len(text)/2])
	case 4:
		r.Value = []byte("\ufeff" + text)
	case 5:
		r.Value = []byte(text + "x")
	case 6:
		r.Value = []byte(strings.Replace(text, "{", `{"eventId":"twice",`, 1))
	case 7:
		r.Value = []byte(strings.Replace(text, Marker, Marker+pick(g, "\xff", `\ud800`, `\udc00x`), 1))
	case 8:
		r = g.unreadable(a, pick[any](g, nil, "1", 1.5, -1, 0, true))
	case 9:
		r = g.longIdentity(a)
	case 10:
		e := event{Kind: IgnoredType, Account: a.id, Note: Marker}
		r = g.record(a, e)
	default:
		r.Value = []byte(pick(g, "null", "[]", "1", `"text"`, "\x00\x01\x02 not JSON", "<xml/>"))
	}
	if g.chance(20) {
		r.Key = nil
	}
	a.plan(r)
}

func (g *generator) unreadable(a *account, version any) Record {
	e := g.event(a, a.next)
	e.Kind, e.Version = "AccountClosed", version
	return g.record(a, e)
}

func (g *generator) longIdentity(a *account) Record {
	e := g.event(a, a.next)
	e.Kind = "AccountClosed"
	long := strings.Repeat("x", 201)
	switch g.rnd.IntN(4) {
	case 0:
		e.ID = long
	case 1:
		e.Account = long
	case 2:
		e.ID = "with\x00NUL"
	default:
		e.Account = ""
	}
	return g.record(a, e)
}
