// Package registry finds the schemas of messages in a schema registry, by the id that
// each value begins with (Confluent's wire format: a zero byte, four bytes of id).
//
//	value ──id──▶ known? ──yes──▶ the schema's format
//	                │ no
//	                ▼
//	             fetch, with references ──▶ compile ──▶ keep
//	                │            │             └ cannot be used: kept as malformed
//	                │            └ no such id: malformed, for some seconds
//	                └ anything else: an error, to be tried again
//
// A schema never changes under its id, so it is fetched once and kept, as long as there
// is room. While the registry is away, messages of known schemas are read on.
package registry
