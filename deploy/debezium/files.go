// Package debezium holds what to copy for an outbox that reaches the projector
// through Debezium: it is embedded so that the demo and the tests run on these very
// files. docs/debezium.md explains them.
package debezium

import _ "embed"

// Connector is the connector's configuration, a JSON document as Kafka Connect's
// REST API takes it.
//
//go:embed connector.json
var Connector []byte

// Outbox is the SQL that makes the outbox table, its publication and the role
// debezium.
//
//go:embed outbox.sql
var Outbox string
