package event

// Field is one thing an event says.
type Field uint8

// The fields of an event, by the contract's names. Data is the JSON object that
// holds Amount and Currency.
const (
	FieldEventID Field = iota
	FieldEventType
	FieldAccountID
	FieldVersion
	FieldOccurredAt
	FieldCorrelationID
	FieldData
	FieldAmount
	FieldCurrency

	// Members that only some formats have.
	memberSchema  // of a Kafka Connect envelope
	memberPayload // of a Kafka Connect envelope

	memberCount
	memberNone // stands for no member
)
