// Package debezium has the files that a user copies to send an outbox through Debezium to the
// projector. They are embedded so that the demo and the tests use the same files. docs/debezium.md
// explains them.
package debezium

import _ "embed"

// Connector is the connector's configuration, a JSON document for Kafka Connect's REST API.
//
//go:embed connector.json
var Connector []byte

// Outbox is the SQL that creates the outbox table, its publication and the role debezium.
//
//go:embed outbox.sql
var Outbox string
