package testbank

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// event is the content of a record's value. A poison event has an invalid field.
type event struct {
	ID          string         `json:"eventId"`
	Kind        string         `json:"eventType"`
	Account     string         `json:"accountId"`
	Version     any            `json:"version"`
	At          string         `json:"occurredAt"`
	Correlation string         `json:"correlationId,omitempty"`
	Data        map[string]any `json:"data,omitempty"`
	Note        string         `json:"note,omitempty"`
}

// event returns a valid event of the account.
func (g *generator) event(a *account, version int64) event {
	e := event{ID: g.newID(), Account: a.id, Version: version, At: g.moment(a, version)}
	if !g.tidy {
		e.Note = Marker
	}
	if g.chance(30) {
		e.Correlation = fmt.Sprintf("corr-%d", g.rnd.IntN(1e6))
	}
	e.Kind, e.Data = g.choose(a, version)
	return e
}

// anything returns a random event type and its data.
func (g *generator) anything(a *account, version int64) (kind string, data map[string]any) {
	switch n := g.rnd.IntN(100); {
	case version == 1, n == 0:
		return "AccountOpened", map[string]any{"currency": a.currency}
	case n == 1 && g.chance(50):
		return "AccountClosed", map[string]any{"currency": a.currency}
	case n == 1:
		return "AccountClosed", nil
	case !g.Clean && n < 6:
		return IgnoredType, nil
	default:
		return pick(g, "FundsCredited", "FundsDebited"), g.money(a.currency)
	}
}

// moment returns a random time in the first months of the year. In a showcase, times are within one
// month and rise with the version.
func (g *generator) moment(a *account, version int64) string {
	start := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	if a.events > 0 {
		const month = 30 * 24 * time.Hour
		part := float64(month) / float64(a.events)
		return start.Add(time.Duration((float64(version-1) + g.rnd.Float64()) * part)).Format("2006-01-02T15:04:05.000Z07:00")
	}
	return start.Add(time.Duration(g.rnd.Int64N(int64(300 * 24 * time.Hour)))).Format(time.RFC3339Nano)
}

func (g *generator) newID() string {
	g.ids++
	return fmt.Sprintf("%08x-%06x", g.rnd.Uint32(), g.ids)
}

func (g *generator) money(currency string) map[string]any {
	amount := fmt.Sprint(1 + g.rnd.IntN(90000))
	if shown := g.rnd.IntN(decimalsOf(currency) + 1); shown > 0 {
		amount += "." + fmt.Sprintf("%0*d", shown, g.rnd.IntN(pow10(shown)))
	}
	return map[string]any{"amount": amount, "currency": currency}
}

func pow10(n int) int {
	p := 1
	for range n {
		p *= 10
	}
	return p
}

// credit returns a valid event that credits a given amount.
func (g *generator) credit(a *account, version int64, amount string) event {
	e := g.event(a, version)
	e.Kind, e.Data = "FundsCredited", map[string]any{"amount": amount, "currency": a.currency}
	return e
}

func (g *generator) record(a *account, e event) Record {
	value, err := json.Marshal(e)
	if err != nil {
		panic(err) // cannot happen: the data has only strings and numbers
	}
	r := Record{Partition: a.partition, Key: a.key, Value: value}
	if !g.tidy {
		r.Headers = g.headers()
	}
	return r
}

// headers returns headers such as producers, tracers or an earlier projector write.
func (g *generator) headers() []Header {
	all := []Header{
		{"traceparent", []byte("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")},
		{"source", nil},
		{"source", []byte{}},
		{"source", []byte("core")},
		{"correlation_id", []byte("second choice")},
		{"correlationId", []byte("first choice")},
		{"correlationId", []byte("never")},
		{"", []byte{0, 0xff, 0xfe}},
		{"__projector.errors.class", []byte("left over")},
		{"__projector.errors.replays", []byte("3")},
		{"__projector.of-some-later-version", nil},
	}
	var headers []Header
	for _, h := range all {
		if g.chance(12) {
			headers = append(headers, h)
		}
	}
	return headers
}

// These are the defects of an event whose account and version can still be read.
const (
	unknownType = iota
	lowerCaseType
	numberAmount
	otherAmount
	negativeAmount
	preciseAmount
	inventedCurrency
	otherFieldAsCurrency
	brokenTime
	noData
	wrongCurrency
	noType
	poisons
)

// poison returns an event with one of the defects above, chosen at random.
func (g *generator) poison(a *account, version int64) event {
	return g.poisoned(a, version, g.rnd.IntN(poisons))
}

func (g *generator) poisoned(a *account, version int64, how int) event {
	e := g.event(a, version)
	e.Kind, e.Data = "FundsCredited", g.money(a.currency)
	switch how {
	case unknownType:
		e.Kind = "FundsTeleported"
	case lowerCaseType:
		e.Kind = "fundscredited"
	case numberAmount:
		e.Data["amount"] = 10.25
	case otherAmount:
		e.Data["amount"] = pick[any](g, nil, true, []string{"1"})
	case negativeAmount:
		e.Data["amount"] = pick(g, "-1", "+1", "1e3", "01", "0", "0.000", "1.", ".5", " 1", "1 ", "1,00", "", "١", "NaN")
	case preciseAmount:
		e.Data["amount"] = pick(g, "1.00001", "9223372036854775808", "922337203685477580800")
	case inventedCurrency:
		e.Data["currency"] = pick(g, "eur", "EURO", "XXX", "", "ZZZ", "DEM")
	case otherFieldAsCurrency:
		e.Data["currency"] = pick[any](g, nil, 978)
	case brokenTime:
		e.At = pick(g, "yesterday", "2026-01-01", "2026-01-01T00:00:00", "2026-02-30T00:00:00Z", "2026-01-01 00:00:00Z", "")
	case noData:
		e.Data = nil
	case wrongCurrency:
		if version == 1 { // the first event sets the currency, so it cannot have a currency mismatch
			e.Kind = ""
			break
		}
		e.Data = g.money(other(a.currency))
	default:
		e.Kind = ""
	}
	return e
}

// noise adds to the account's script a record that changes no account.
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

// Break changes a few bytes of a record at random places.
func Break(rnd *rand.Rand, r *Record) {
	r.Value = broken(rnd, r.Value)
	switch rnd.IntN(6) {
	case 0:
		r.Key = broken(rnd, r.Key)
	case 1:
		r.Headers = append(r.Headers, Header{
			Key: string(broken(rnd, []byte("__projector.errors.replays"))), Value: broken(rnd, []byte("1")),
		})
	}
}

func broken(rnd *rand.Rand, original []byte) []byte {
	if len(original) == 0 {
		return []byte{byte(rnd.Uint32() & 0xff)}
	}
	b := append([]byte(nil), original...)
	for range 1 + rnd.IntN(3) {
		at := rnd.IntN(len(b))
		to := at + rnd.IntN(len(b)-at)
		switch rnd.IntN(6) {
		case 0:
			b[at] = byte(rnd.Uint32() & 0xff)
		case 1:
			b[at] ^= 1 << rnd.IntN(8)
		case 2:
			b = append(b[:at:at], b[to:]...)
		case 3:
			b = append(b[:to:to], b[at:]...)
		case 4:
			b[at] = `{}[]":,\u0x9-+eE.`[rnd.IntN(17)]
		default:
			b[at], b[to] = b[to], b[at]
		}
		if len(b) == 0 {
			return b
		}
	}
	return b
}
