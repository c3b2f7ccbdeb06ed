// Package avro reads events from Avro's binary encoding, by the schema they were
// written with. It is pure: who calls it has fetched the schema.
//
//	event    Avro
//	text     string, enum
//	version  int, long
//	time     timestamp-millis, -micros, -nanos, or RFC 3339 in a string
//	amount   decimal on bytes or fixed, or digits in a string
//	data     a record, or a map of strings
//
// Each may stand in a union with null, which counts as null in JSON. A float is never
// an amount or a version.
package avro
