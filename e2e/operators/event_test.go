package operators_test

import (
	"encoding/json"
	"fmt"
	"time"
)

// event is a generated event and its place in the topic.
type event struct {
	id, account string
	version     int64
	kind        string
	cents       int64
	currency    string
	at          time.Time
	points      string // JSON value that only the custom projections read
	asNumber    bool   // the amount is a JSON number, which the built-in projections refuse
	renamed     bool   // a mapping has given the type unknown another meaning
	garbage     bool   // the value is not JSON
	nothing     bool   // a tombstone, or an offset that consumers do not read: garbage without a value

	partition int32
	offset    int64
}

const (
	opened  = "AccountOpened"
	closed  = "AccountClosed"
	credit  = "FundsCredited"
	debit   = "FundsDebited"
	unknown = "FundsTeleported"
	// ignorable is the name of a mapping for types that only advance the version.
	ignorable = "ignored"
)

func (e *event) funds() bool { return e.kind == credit || e.kind == debit }

// The method signed returns the amount that the event adds to a balance.
func (e *event) signed() int64 {
	switch e.kind {
	case credit:
		return e.cents
	case debit:
		return -e.cents
	default:
		return 0
	}
}

// money formats cents as PostgreSQL formats the column.
func money(cents int64) string {
	sign := ""
	if cents < 0 {
		sign, cents = "-", -cents
	}
	return fmt.Sprintf("%s%d.%02d", sign, cents/100, cents%100)
}

// value is the record's value.
func (e *event) value() []byte {
	switch {
	case e.nothing:
		return nil
	case e.garbage:
		return []byte(`{"eventId":"` + e.id)
	}
	data := map[string]any{"currency": e.currency}
	if e.kind != opened && e.kind != closed {
		data["amount"], data["points"] = money(e.cents), json.RawMessage(e.points)
		if e.asNumber {
			data["amount"] = json.RawMessage(money(e.cents))
		}
	}
	value, err := json.Marshal(map[string]any{
		"eventId": e.id, "eventType": e.kind, "accountId": e.account, "version": e.version,
		"occurredAt": e.at.Format(time.RFC3339), "data": data,
	})
	if err != nil {
		panic(err) // cannot happen: the map has strings and numbers only
	}
	return value
}

// The method text describes the event in the report of a failure.
func (e *event) text() string {
	more := ""
	switch {
	case e.nothing:
		return fmt.Sprintf("%d/%d nothing", e.partition, e.offset)
	case e.garbage:
		return fmt.Sprintf("%d/%d garbage", e.partition, e.offset)
	case e.asNumber:
		more = " amount-as-number"
	}
	if e.points == many {
		more += " points-as-text"
	}
	return fmt.Sprintf("%d/%d %s %s v%d %s%s %s%s", e.partition, e.offset, e.account, e.id, e.version, money(e.signed()), e.currency, e.kind, more)
}

// many is a value of the field points that PostgreSQL cannot convert to a number.
const many = `"many"`

// bankFault returns the error class that the built-in projections give to the event, or "".
func (r *rules) bankFault(e *event) string {
	switch {
	case r.ignores(e):
		return ""
	case r.read(e).kind == unknown:
		return "unknown_event_type"
	case e.asNumber:
		return "malformed_payload"
	default:
		return ""
	}
}

// noFault is the check of the custom projections. It accepts each event whose value is JSON.
func noFault(*event) string { return "" }
