package change

import (
	"encoding/json"

	"projector/internal/cli/output"
)

// Balances has an account's balance before and after a change, for a person who may approve it. A
// value is null if the account has no balance then.
type Balances struct {
	Currency *string      `json:"currency"`
	Before   *json.Number `json:"balance_before"`
	After    *json.Number `json:"balance_after"`
}

// BalanceColumns returns the columns of a table with the balance before, the balance after and the
// currency.
func BalanceColumns() []output.Column {
	return []output.Column{output.Right("BALANCE BEFORE", 14), output.Right("BALANCE AFTER", 14), output.Left("CURRENCY", 8)}
}
