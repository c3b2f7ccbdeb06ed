// Package outbox fetches events from a producer's transactional outbox, which is the table in which
// the producer stores events before it publishes them. It fetches and applies the events that
// accounts wait for, for example because Kafka did not deliver them.
//
//	gap register ──due──▶ query ──▶ outbox ──rows──▶ decode ──▶ repair
//	                 ▲                                            │
//	                 └───────── later queries, with pauses ───────┘
//
// The gap register in PostgreSQL lists the versions that accounts wait for. Schedule decides,
// without I/O, for which accounts the outbox is queried and when. Client sends the queries on a
// separate connection and only reads. Fetch sends a query, decodes the result and returns only the
// requested events. Fetcher repeats this while a consumer runs. An event is applied as a
// readmodel.RepairRecord without a Kafka position. If Kafka delivers the event later, the consumer
// skips it as a duplicate.
package outbox
