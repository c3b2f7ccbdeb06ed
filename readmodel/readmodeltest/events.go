package readmodeltest

import (
	"fmt"
	"testing"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
)

// Partition is the partition that most tests use.
var Partition = readmodel.Partition{Group: "g", Topic: "events", Number: 0}

// InPartition returns the partition of the same group and topic with this number.
func InPartition(n int32) readmodel.Partition {
	p := Partition
	p.Number = n
	return p
}

// At returns a position in a partition whose leader has never changed.
func At(offset int64) projection.NextOffset { return projection.NextOffset{Offset: offset} }

// JSONFormat returns the format of the events of these tests.
func JSONFormat(t testing.TB) event.Format {
	t.Helper()
	currencies, err := event.ParseCurrencies("all")
	if err != nil {
		t.Fatal(err)
	}
	return event.NewJSON(event.Options{FirstVersion: 1, Currencies: currencies})
}

// Credit returns an event of type FundsCredited. Its id is the account's id and the version.
func Credit(account string, version int, amount, currency string) string {
	return fmt.Sprintf(`{"eventId":"%s-%d","eventType":"FundsCredited","accountId":%q,"version":%d,`+
		`"occurredAt":"2026-01-01T00:00:00.5Z","data":{"amount":%q,"currency":%q}}`,
		account, version, account, version, amount, currency)
}

// Event returns an event with all fields that the projections use.
func Event(id, kind, account string, version int, at, data string) string {
	return fmt.Sprintf(`{"eventId":%q,"eventType":%q,"accountId":%q,"version":%d,"occurredAt":%q,"correlationId":"c-%s","data":%s}`,
		id, kind, account, version, at, id, data)
}

// Noon is the time of most events.
const Noon = "2026-01-01T12:00:00Z"

// EUR returns the data of an event with an amount in EUR.
func EUR(amount string) string { return `{"amount":"` + amount + `","currency":"EUR"}` }
