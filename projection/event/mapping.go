package event

// FieldPath is where a field of an event stands. Exactly one of its fields is set; the
// place of FieldData may also be empty, which is the document itself.
type FieldPath struct {
	// Path leads to a member of the JSON document, outermost name first. The paths
	// of FieldAmount and FieldCurrency begin in the object that is FieldData.
	Path   []string
	Header string // of the record
	Key    bool   // the record's key
}

// Mapping is how other people's events are read. The zero value is the contract's.
type Mapping struct {
	// Types says what an event type means, by its name. Ignorable is one that only
	// advances the version. The name the contract has for a type counts only when
	// the mapping gives that type no name.
	Types map[string]Type
	// Fields says where fields stand; what is not in it stands where the format has it.
	Fields map[Field]FieldPath
	// Time is how FieldOccurredAt is written.
	Time TimeUnit
}

// MappingError is a place in a mapping that the format cannot have.
type MappingError struct {
	Field  Field
	Reason string
}

// Error implements error.
func (e *MappingError) Error() string { return e.Field.String() + ": " + e.Reason }
