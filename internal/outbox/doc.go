// Package outbox fetches events from a producer's transactional outbox, which is the table in which
// the producer stores events before it publishes them. It fetches and applies the events that
// accounts wait for, because Kafka did not deliver them.
//
//	gap register ──due──▶ question ──▶ outbox ──rows──▶ decode ──▶ repair
//	                 ▲                                               │
//	                 └────────── ask again, ever later ──────────────┘
//
// Schedule decides which accounts are queried and when, without I/O. Client sends the queries on a
// separate connection and only reads. Fetch sends a query, decodes the result and returns only the
// requested events. Fetcher repeats this while a consumer runs. An event is applied as a
// readmodel.RepairRecord without a Kafka position. If Kafka delivers the event later, it is a
// duplicate.
package outbox
