package stream

import (
	"encoding/json"
	"fmt"
	"time"
)

// event is what a record is written from; a poison event has a field that breaks
// a rule.
type event struct {
	ID          string         `json:"eventId"`
	Kind        string         `json:"eventType"`
	Account     string         `json:"accountId"`
	Version     any            `json:"version"`
	At          string         `json:"occurredAt"`
	Correlation string         `json:"correlationId,omitempty"`
	Data        map[string]any `json:"data,omitempty"`
	Note        string         `json:"note"`
}

// event makes a good event of the account.
func (g *generator) event(a *account, version int64) event {
	e := event{
		ID: g.newID(), Account: a.id, Version: version, Note: Marker,
		At: time.Unix(1767225600+g.rnd.Int64N(86400*300), g.rnd.Int64N(1e9)).UTC().Format(time.RFC3339Nano),
	}
	if g.chance(30) {
		e.Correlation = fmt.Sprintf("corr-%d", g.rnd.IntN(1e6))
	}
	switch n := g.rnd.IntN(100); {
	case version == 1, n == 0:
		e.Kind, e.Data = "AccountOpened", map[string]any{"currency": a.currency}
	case n == 1:
		e.Kind = "AccountClosed"
		if g.chance(50) {
			e.Data = map[string]any{"currency": a.currency}
		}
	case !g.Clean && n < 6:
		e.Kind = IgnoredType
	default:
		e.Kind, e.Data = pick(g, "FundsCredited", "FundsDebited"), g.money(a.currency)
	}
	return e
}

func (g *generator) newID() string {
	g.ids++
	return fmt.Sprintf("%08x-%06x", g.rnd.Uint32(), g.ids)
}

func (g *generator) money(currency string) map[string]any {
	decimals := map[string]int{"JPY": 0, "ISK": 0, "KWD": 3, "BHD": 3, "CLF": 4}
	n, known := decimals[currency]
	if !known {
		n = 2
	}
	amount := fmt.Sprint(1 + g.rnd.IntN(90000))
	if shown := g.rnd.IntN(n + 1); shown > 0 {
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

// credit is a good event of a given amount.
func (g *generator) credit(a *account, version int64, amount string) event {
	e := g.event(a, version)
	e.Kind, e.Data = "FundsCredited", map[string]any{"amount": amount, "currency": a.currency}
	return e
}

// record writes an event.
func (g *generator) record(a *account, e event) Record {
	value, err := json.Marshal(e)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return Record{Partition: a.partition, Key: a.key, Value: value, Headers: g.headers()}
}

// headers are what producers, tracers and an earlier projector leave on records.
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
