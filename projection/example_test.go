package projection_test

import (
	"fmt"

	"projector/projection"
	"projector/projection/event"
)

// The method Apply returns the account after the record, together with the decision. A duplicate
// does not change the account. An event whose version is too high is dead-lettered as a version
// gap.
func ExampleAccount_Apply() {
	format := event.NewJSON(event.Options{FirstVersion: 1})
	account := projection.NewAccount(1)
	for _, value := range []string{
		`{"eventId":"e-1","eventType":"FundsCredited","accountId":"acc-1","version":1,"occurredAt":"2026-01-01T00:00:00Z","data":{"amount":"10.25","currency":"EUR"}}`,
		`{"eventId":"e-1","eventType":"FundsCredited","accountId":"acc-1","version":1,"occurredAt":"2026-01-01T00:00:00Z","data":{"amount":"10.25","currency":"EUR"}}`,
		`{"eventId":"e-3","eventType":"FundsDebited","accountId":"acc-1","version":3,"occurredAt":"2026-01-01T00:00:02Z","data":{"amount":"1.50","currency":"EUR"}}`,
		`{"eventId":"e-2","eventType":"FundsDebited","accountId":"acc-1","version":2,"occurredAt":"2026-01-01T00:00:01Z","data":{"amount":5,"currency":"EUR"}}`,
	} {
		var decoded event.Decoded
		format.Decode(event.Message{Value: []byte(value)}, &decoded)
		var decision projection.Decision
		account, decision = account.Apply(&decoded, false)
		fmt.Printf("%s %s: version %d, balance %d\n", decision.Outcome, decision.Class, account.Version, account.Balance)
	}
	// Output:
	// applied : version 1, balance 1025
	// duplicate : version 1, balance 1025
	// dead_lettered version_gap: version 1, balance 1025
	// dead_lettered malformed_payload: version 1, balance 1025
}
