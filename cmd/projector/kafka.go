package main

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"projector/internal/telemetry"
)

// kafkaFlags say where the brokers are, how to reach them and which topics count.
type kafkaFlags struct {
	Brokers  []string `env:"KAFKA_BROKERS" default:"localhost:9092" placeholder:"HOST:PORT" group:"Kafka" help:"Brokers to start from, separated by commas (default localhost:9092)."`
	Topic    string   `env:"KAFKA_TOPIC" default:"account-events" group:"Kafka" help:"The account events (default account-events)."`
	DLQTopic string   `name:"dlq-topic" env:"KAFKA_DLQ_TOPIC" placeholder:"TOPIC" group:"Kafka" help:"Dead letters; default the topic with .dlq behind it."`
	securityFlags
}

// securityFlags say how to reach the brokers.
type securityFlags struct {
	TLS     bool   `name:"tls" env:"KAFKA_TLS" group:"Kafka" help:"Connect by TLS."`
	TLSCA   string `name:"tls-ca" env:"KAFKA_TLS_CA" type:"path" placeholder:"FILE" group:"Kafka" help:"CA certificates (PEM); default the system's."`
	TLSCert string `name:"tls-cert" env:"KAFKA_TLS_CERT" type:"path" placeholder:"FILE" group:"Kafka" help:"Client certificate (PEM)."`
	TLSKey  string `name:"tls-key" env:"KAFKA_TLS_KEY" type:"path" placeholder:"FILE" group:"Kafka" help:"Client key (PEM)."`

	SASLMechanism    string `name:"sasl-mechanism" env:"KAFKA_SASL_MECHANISM" placeholder:"NAME" group:"Kafka" help:"PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; default none."`
	SASLUsername     string `name:"sasl-username" env:"KAFKA_SASL_USERNAME" placeholder:"NAME" group:"Kafka" help:"User name."`
	SASLPassword     string `name:"sasl-password" env:"KAFKA_SASL_PASSWORD" placeholder:"SECRET" group:"Kafka" help:"Password; better given by file."`
	SASLPasswordFile string `name:"sasl-password-file" env:"KAFKA_SASL_PASSWORD_FILE" type:"path" placeholder:"FILE" group:"Kafka" help:"File that holds the password."`
}

// dlqTopic is the DLQ topic's name.
func (f *kafkaFlags) dlqTopic() string { return cmp.Or(f.DLQTopic, f.Topic+".dlq") }

// client are the options of every Kafka client: seeds, security, logger.
func (f *kafkaFlags) client(log *slog.Logger) ([]kgo.Opt, error) {
	if f.Topic == "" {
		return nil, usagef("--topic (KAFKA_TOPIC): must not be empty")
	}
	if f.dlqTopic() == f.Topic {
		return nil, usagef("--dlq-topic (KAFKA_DLQ_TOPIC): must differ from --topic")
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(f.Brokers...),
		kgo.ClientID("projector"),
		kgo.SoftwareNameAndVersion("projector", softwareVersion()),
		kgo.WithLogger(telemetry.KafkaLogger(log)),
	}
	secure, err := f.tlsConfig()
	if err != nil {
		return nil, err
	}
	if secure != nil {
		opts = append(opts, kgo.DialTLSConfig(secure))
	}
	mechanism, err := f.sasl()
	if err != nil {
		return nil, err
	}
	if mechanism != nil {
		opts = append(opts, kgo.SASL(mechanism))
	}
	for _, broker := range f.Brokers {
		if err := checkBroker(broker); err != nil {
			return nil, err
		}
	}
	if err := kgo.ValidateOpts(opts...); err != nil {
		return nil, usagef("--brokers (KAFKA_BROKERS): %s", err)
	}
	return opts, nil
}

// checkBroker refuses what can never be reached: it would be retried for ever.
func checkBroker(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil { // no port: the client takes 9092
		host, port = address, "9092"
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 1 || n > 65535 || host == "" || strings.ContainsAny(host, " \t,/:@") && net.ParseIP(host) == nil {
		return usagef("--brokers (KAFKA_BROKERS): %q is not HOST:PORT", address)
	}
	return nil
}

// softwareVersion is the version in the characters Kafka allows.
func softwareVersion() string {
	v := strings.Map(func(r rune) rune {
		if r == '.' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, version)
	return cmp.Or(strings.Trim(v, ".-"), "dev")
}

func (f *securityFlags) tlsConfig() (*tls.Config, error) {
	if !f.TLS {
		if f.TLSCA != "" || f.TLSCert != "" || f.TLSKey != "" {
			return nil, usagef("--tls (KAFKA_TLS): is off, but certificates are given; turn it on")
		}
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.TLSCA != "" {
		pem, err := os.ReadFile(f.TLSCA)
		if err != nil {
			return nil, usagef("--tls-ca (KAFKA_TLS_CA): %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, usagef("--tls-ca (KAFKA_TLS_CA): %s holds no PEM certificate", f.TLSCA)
		}
	}
	if (f.TLSCert == "") != (f.TLSKey == "") {
		return nil, usagef("--tls-cert and --tls-key (KAFKA_TLS_CERT, KAFKA_TLS_KEY): give both or none")
	}
	if f.TLSCert != "" {
		pair, err := tls.LoadX509KeyPair(f.TLSCert, f.TLSKey)
		if err != nil {
			return nil, usagef("--tls-cert, --tls-key (KAFKA_TLS_CERT, KAFKA_TLS_KEY): %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

func (f *securityFlags) sasl() (sasl.Mechanism, error) {
	if f.SASLMechanism == "" {
		return nil, nil
	}
	password := f.SASLPassword
	if f.SASLPasswordFile != "" {
		text, err := os.ReadFile(f.SASLPasswordFile)
		if err != nil {
			return nil, usagef("--sasl-password-file (KAFKA_SASL_PASSWORD_FILE): %w", err)
		}
		password = strings.TrimRight(string(text), "\r\n")
	}
	if f.SASLUsername == "" || password == "" {
		return nil, usagef("--sasl-username and --sasl-password-file (KAFKA_SASL_USERNAME, KAFKA_SASL_PASSWORD_FILE): "+
			"both are needed for --sasl-mechanism=%s", f.SASLMechanism)
	}
	switch strings.ToUpper(f.SASLMechanism) {
	case "PLAIN":
		return plain.Auth{User: f.SASLUsername, Pass: password}.AsMechanism(), nil
	case "SCRAM-SHA-256":
		return scram.Auth{User: f.SASLUsername, Pass: password}.AsSha256Mechanism(), nil
	case "SCRAM-SHA-512":
		return scram.Auth{User: f.SASLUsername, Pass: password}.AsSha512Mechanism(), nil
	default:
		return nil, usageError{fmt.Errorf("--sasl-mechanism (KAFKA_SASL_MECHANISM): %q is unknown; "+
			"use PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512", f.SASLMechanism)}
	}
}
