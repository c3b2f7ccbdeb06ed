package event

// Field is one thing an event says.
type Field uint8

// The fields of an event. Data is the JSON object that holds Amount and Currency.
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
	memberSchema          // of a Kafka Connect envelope
	memberPayload         // of a Kafka Connect envelope
	memberSpecVersion     // of a CloudEvent
	memberDataContentType // of a CloudEvent
	memberDataBase64      // of a CloudEvent

	memberCount
	memberNone // stands for no member
)

// fieldNames are the contract's.
var fieldNames = [...]string{
	"eventId", "eventType", "accountId", "version", "occurredAt", "correlationId", "data", "amount", "currency",
}

// Fields lists the fields of an event.
func Fields() []Field {
	fields := make([]Field, len(fieldNames))
	for i := range fields {
		fields[i] = Field(i)
	}
	return fields
}

// String returns the contract's name of the field.
func (f Field) String() string {
	if int(f) >= len(fieldNames) {
		return "unknown"
	}
	return fieldNames[f]
}
