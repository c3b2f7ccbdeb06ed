package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"

	"projector/deploy/debezium"
	"projector/internal/devstack"
)

// pipeline is one bank with its outbox table, connector, read model and projector.
type pipeline struct {
	name         string
	topic        string
	bankDatabase string
	alterOutbox  string            // SQL that changes the outbox of deploy/debezium
	connector    string            // name of the connector
	settings     map[string]string // settings that replace those of deploy/debezium
	flags        []string          // flags of the projector

	bank      *Bank
	readModel *pgxpool.Pool
	projector *devstack.Program
}

const (
	stringConverter = "StringConverter, timestamp with time zone"
	jsonConverter   = "JsonConverter, timestamp without time zone"
)

// bankDatabase is the name of the bank's database in the first pipeline. The connector's
// configuration refers to it as ${env:BANK_DB_NAME}.
const bankDatabase = "bank"

// pipelines returns two pipelines with different formats. The first pipeline uses deploy/debezium
// unchanged. In the second pipeline, keys and headers are quoted, the payload is a string of
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

func (p *pipeline) group() string { return p.topic + "-projector" }

func (p *pipeline) dlqTopic() string { return p.topic + ".dlq" }

// document returns the connector's configuration. It is the file of deploy/debezium without any
// change, unless the pipeline has its own settings.
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

// startConnect starts Debezium and then opens the banks. The banks open later because a connector
// without a snapshot publishes only the changes committed after it has created its slot.
func (s *stage) startConnect(ctx context.Context) error {
	s.say("starting Kafka Connect with Debezium %s (fetched once)", devstack.DebeziumVersion)
	env, err := s.connectEnv(ctx)
	if err != nil {
		return err
	}
	options := devstack.ConnectOptions{
		Brokers: s.kafka.Addrs(), Env: env, Log: s.options.Log,
		Settings: map[string]string{"offset.flush.interval.ms": flushEvery},
	}
	for _, p := range s.pipelines {
		document, err := p.document()
		if err != nil {
			return err
		}
		options.Connectors = append(options.Connectors, document)
	}
	if s.connect, err = devstack.StartConnect(ctx, options); err != nil {
		return err
	}
	s.closers = append(s.closers, s.connect.Close)
	for _, p := range s.pipelines {
		if err := p.bank.Open(ctx, s.options.Accounts); err != nil {
			return err
		}
	}
	return nil
}

// connectEnv returns the environment variables for the connector's configuration.
func (s *stage) connectEnv(ctx context.Context) ([]string, error) {
	server, err := url.Parse(s.postgres.URL())
	if err != nil {
		return nil, fmt.Errorf("address of PostgreSQL: %w", err)
	}
	password, err := s.setPassword(ctx)
	if err != nil {
		return nil, err
	}
	return []string{
		"BANK_DB_HOST=" + server.Hostname(), "BANK_DB_PORT=" + server.Port(), "BANK_DB_NAME=" + bankDatabase,
		"BANK_DB_USER=" + debeziumRole, "BANK_DB_PASSWORD=" + password, "BANK_DB_SSLMODE=disable",
	}, nil
}

const killLimit = 3 * time.Minute

// killConnect kills Connect when it has published enough events to every topic since it last wrote
// its offsets. If afterWrite is true, killConnect first waits until Connect has written its offsets
// once since its start.
func (s *stage) killConnect(ctx context.Context, afterWrite bool) error {
	known, err := s.connect.OffsetsWrittenAt()
	if err != nil {
		return err
	}
	safe := map[string]int64{} // records that the offsets may cover, by topic; none before the first write
	err = await(ctx, killLimit, func(ctx context.Context) (bool, error) {
		at, err := s.connect.OffsetsWrittenAt()
		if err != nil {
			return false, err
		}
		ends, err := s.ends(ctx)
		if err != nil {
			return false, err
		}
		if !at.Equal(known) {
			known, safe, afterWrite = at, ends, false
		}
		return !afterWrite && s.unwritten(ends, safe), nil
	})
	if err != nil {
		return fmt.Errorf("wait until Debezium has published enough: %w", err)
	}
	s.connect.Kill()
	s.say("Connect killed (kill -9), %s", offsetsState(known))
	return nil
}

func offsetsState(written time.Time) string {
	if written.IsZero() {
		return "before it had ever written its offsets"
	}
	return fmt.Sprintf("%s after it had written its offsets", time.Since(written).Round(time.Millisecond))
}

// unwritten reports whether every topic has enough records that the written offsets do not cover.
// safe has the number of covered records for each topic.
func (s *stage) unwritten(ends, safe map[string]int64) bool {
	for _, p := range s.pipelines {
		if ends[p.topic]-safe[p.topic] < s.options.Unwritten {
			return false
		}
	}
	return true
}

// ends returns the number of records in each topic and in each DLQ topic.
func (s *stage) ends(ctx context.Context) (map[string]int64, error) {
	var topics []string
	for _, p := range s.pipelines {
		topics = append(topics, p.topic, p.dlqTopic())
	}
	listed, err := s.admin.ListEndOffsets(ctx, topics...)
	if err != nil {
		return nil, fmt.Errorf("list the ends of the topics: %w", err)
	}
	ends := map[string]int64{}
	listed.Each(func(o kadm.ListedOffset) {
		if o.Err == nil && o.Partition >= 0 {
			ends[o.Topic] += o.Offset
		}
	})
	return ends, nil
}
