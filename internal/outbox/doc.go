// Package outbox asks the table in which a producer stores what it publishes (a transactional
// outbox) for events that accounts wait for and that Kafka did not bring, and applies them.
//
//	gap register ──due──▶ question ──▶ outbox ──rows──▶ decode ──▶ repair
//	                 ▲                                               │
//	                 └────────── ask again, ever later ──────────────┘
//
// Schedule is pure and says who is asked for when. Client asks, by a connection of its own
// that only reads. Fetch decodes what comes back and returns only what was asked for. Fetcher
// does it again and again next to a running consumer. What is applied is a readmodel.RepairRecord
// without a place in Kafka: when Kafka brings the event after all, it is a duplicate.
package outbox
