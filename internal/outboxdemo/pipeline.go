package outboxdemo

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/deploy/debezium"
	"projector/internal/devstack"
	"projector/internal/outbox"
)

// pipeline is one bank and what hangs on it.
type pipeline struct {
	name         string
	topic        string
	bankDatabase string
	alterOutbox  string            // SQL that makes the outbox of deploy/debezium another one
	connector    string            // name of the connector
	settings     map[string]string // that replace those of deploy/debezium
	flags        []string          // of the projector

	bank      *outbox.Bank
	readModel *pgxpool.Pool
	projector *devstack.Program
}

const (
	stringConverter = "StringConverter, timestamp with time zone"
	jsonConverter   = "JsonConverter, timestamp without time zone"
)

// bankDatabase is the name in ${env:BANK_DB_NAME}.
const bankDatabase = "bank"

// pipelines are the two ways in which an outbox arrives. The first is deploy/debezium
// as it stands. In the second, keys and headers are quoted, the payload is a string of
// escaped JSON, and a time is a number.
func pipelines() []*pipeline {
	const converter = "org.apache.kafka.connect.json.JsonConverter"
	return []*pipeline{{
		name: stringConverter, topic: "account-events", bankDatabase: bankDatabase,
	}, {
		name: jsonConverter, topic: "account-events-json", bankDatabase: "bank_json",
		alterOutbox: `ALTER TABLE outbox ALTER COLUMN occurred_at TYPE timestamp USING occurred_at AT TIME ZONE 'UTC'`,
		connector:   "account-outbox-json",
		settings: map[string]string{
			"database.dbname": "bank_json", "slot.name": "account_outbox_json", "topic.prefix": "bank-json",
			"transforms.outbox.route.topic.replacement": "${routedByValue}-events-json",
			"key.converter": converter, "key.converter.schemas.enable": "false",
			"value.converter": converter, "value.converter.schemas.enable": "false",
			"header.converter": converter, "header.converter.schemas.enable": "false",
		},
		flags: []string{"--debezium-time-unit=us"},
	}}
}

func (p *pipeline) readModelDatabase() string { return p.bankDatabase + "_read_model" }

func (p *pipeline) dlqTopic() string { return p.topic + ".dlq" }

// document is the connector's configuration: that of deploy/debezium, byte by byte,
// unless the pipeline has settings of its own.
func (p *pipeline) document() ([]byte, error) {
	if p.connector == "" {
		return debezium.Connector, nil
	}
	var connector struct {
		Name   string            `json:"name"`
		Config map[string]string `json:"config"`
	}
	if err := json.Unmarshal(debezium.Connector, &connector); err != nil {
		return nil, fmt.Errorf("read the connector's configuration: %w", err)
	}
	connector.Name = p.connector
	maps.Copy(connector.Config, p.settings)
	return json.Marshal(connector)
}
