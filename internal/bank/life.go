package bank

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// The event types of this bank.
const (
	opened   = "AccountOpened"
	credited = "FundsCredited"
	debited  = "FundsDebited"
	closed   = "AccountClosed"
)

// fact is an event before it is written down. Its JSON is the wire format.
type fact struct {
	EventID       string `json:"eventId"`
	EventType     string `json:"eventType"`
	AccountID     string `json:"accountId"`
	Version       int64  `json:"version"`
	OccurredAt    string `json:"occurredAt"`
	CorrelationID string `json:"correlationId,omitempty"`
	Data          *data  `json:"data,omitempty"`
}

type data struct {
	Amount   any    `json:"amount,omitempty"` // a string, unless a mishap makes it a number
	Currency string `json:"currency"`
}

// record writes the fact down.
func (f fact) record() Record {
	value, err := json.Marshal(f)
	if err != nil {
		panic(fmt.Sprintf("bank: an event cannot be written as JSON: %v", err)) // strings and numbers always can
	}
	return Record{Key: []byte(f.AccountID), Value: value}
}

func records(facts []fact) []Record {
	list := make([]Record, len(facts))
	for i, f := range facts {
		list[i] = f.record()
	}
	return list
}

// life is an account's events, versions 1 to n, as they should be.
func (g *generator) life(account, currency string, n int) []fact {
	facts := make([]fact, n)
	for i := range facts {
		facts[i] = fact{
			EventID: g.id(), EventType: g.eventType(i, n), AccountID: account, Version: int64(i) + 1,
			OccurredAt: firstDay.Add(g.moment(i, n)).Format("2006-01-02T15:04:05.000Z07:00"),
		}
		if g.rng.IntN(10) > 0 {
			facts[i].CorrelationID = g.id()
		}
		switch facts[i].EventType {
		case opened:
			facts[i].Data = &data{Currency: currency}
		case closed:
		default:
			facts[i].Data = &data{Amount: g.amount(facts[i].EventType, currency), Currency: currency}
		}
	}
	return facts
}

// eventType is that of the i-th of n events. A few accounts are closed in the end.
func (g *generator) eventType(i, n int) string {
	switch pick := g.rng.IntN(100); {
	case i == 0:
		return opened
	case i == n-1 && i > 1 && pick < 4:
		return closed
	case i == 1 || pick < 35:
		return credited
	default:
		return debited
	}
}

// amount is a decimal with the currency's decimals: credits are larger and rarer
// than debits.
func (g *generator) amount(eventType, currency string) string {
	whole := 1 + g.rng.IntN(120)
	if eventType == credited {
		whole = 50 + g.rng.IntN(400)
	}
	if digits[currency] == 0 {
		return strconv.Itoa(whole * 100)
	}
	limit := 1
	for range digits[currency] {
		limit *= 10
	}
	fraction := strconv.Itoa(g.rng.IntN(limit))
	return strconv.Itoa(whole) + "." + strings.Repeat("0", digits[currency]-len(fraction)) + fraction
}

// id is 128 random bits.
func (g *generator) id() string {
	return fmt.Sprintf("%016x%016x", g.rng.Uint64(), g.rng.Uint64())
}
