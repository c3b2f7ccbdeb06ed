package event

// Class names why a record was dead-lettered. The names are public surface: DLQ
// header, metric label, filter of the dlq commands.
type Class string

// The classes, in the order of the contract.
const (
	MalformedPayload    Class = "malformed_payload"
	UnknownEventType    Class = "unknown_event_type"
	InvalidAmount       Class = "invalid_amount"
	UnsupportedCurrency Class = "unsupported_currency"
	CurrencyMismatch    Class = "currency_mismatch"
	VersionGap          Class = "version_gap"
	VersionConflict     Class = "version_conflict"
	BalanceOverflow     Class = "balance_overflow"
	RejectedByDatabase  Class = "rejected_by_database"
)

// Classes lists every class, for metrics that are declared from the start and
// for validating filters.
func Classes() []Class {
	return []Class{
		MalformedPayload, UnknownEventType, InvalidAmount, UnsupportedCurrency, CurrencyMismatch,
		VersionGap, VersionConflict, BalanceOverflow, RejectedByDatabase,
	}
}

// Fault is why a message cannot be applied. Its text names the field and the
// rule and never the value: no amounts, no payload.
type Fault struct {
	Class  Class
	Field  string // JSON path or header, e.g. "data.amount"; empty when the whole value is meant
	Reason string
}

// Error implements error.
func (f *Fault) Error() string {
	if f.Field == "" {
		return f.Reason
	}
	return f.Field + ": " + f.Reason
}
