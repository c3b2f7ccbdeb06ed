// Package protobuf reads events from Protobuf messages in the schema registry's wire
// format, by the .proto file they were written with. It is pure: who calls it has
// fetched the file and what it imports.
//
//	event    Protobuf
//	text     string, enum (the value's name), StringValue
//	version  any integer, Int64Value and its like
//	time     google.protobuf.Timestamp, or RFC 3339 in a string
//	amount   digits in a string, or confluent.type.Decimal
//	data     a message
//
// A name is a field's own or its JSON name: accountId finds account_id. A field without
// presence cannot tell its zero value from none: text that is empty, and an enum's
// first value, are taken for none, a number for 0.
package protobuf
