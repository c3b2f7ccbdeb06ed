package flags

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"projector/errclass"
	"projector/internal/cli/exit"
	"projector/internal/telemetry"
)

// KafkaFlags are the flags of the brokers, the connection and the topics.
type KafkaFlags struct {
	Brokers       []string `json:"-" env:"KAFKA_BROKERS" default:"localhost:9092" placeholder:"HOST:PORT" group:"Kafka" help:"Brokers to start from, separated by commas (default localhost:9092)."`
	Topic         string   `env:"KAFKA_TOPIC" default:"account-events" group:"Kafka" help:"Topic of the account events (default account-events)."`
	DLQTopic      string   `name:"dlq-topic" env:"KAFKA_DLQ_TOPIC" placeholder:"TOPIC" group:"Kafka" help:"Topic for dead letters; default the topic's name followed by .dlq."`
	SecurityFlags `json:"-"`
	built         BuildInfo
}

// AfterApply stores the version of the program, which each client sends to the brokers.
func (f *KafkaFlags) AfterApply(built BuildInfo) error {
	f.built = built
	return nil
}

// Kafka returns f. Generic code checks for this method to find the commands that have these flags.
func (f *KafkaFlags) Kafka() *KafkaFlags { return f }

// DeadLetterTopic returns the name of the DLQ topic.
func (f *KafkaFlags) DeadLetterTopic() string { return cmp.Or(f.DLQTopic, f.Topic+".dlq") }

// metadataAge is the shortest time between two metadata requests of a client. With the default of 5 s,
// each change of a leader and each new DLQ topic would delay events by up to 5 s.
const metadataAge = 500 * time.Millisecond

// Client returns the options that the Kafka clients of a command share, such as seed brokers,
// security and logger.
func (f *KafkaFlags) Client(log *slog.Logger) ([]kgo.Opt, error) {
	if err := checkTopic("--topic (KAFKA_TOPIC)", f.Topic); err != nil {
		return nil, err
	}
	if err := checkTopic("--dlq-topic (KAFKA_DLQ_TOPIC)", f.DeadLetterTopic()); err != nil {
		return nil, err
	}
	if f.DeadLetterTopic() == f.Topic {
		return nil, exit.Usagef("--dlq-topic (KAFKA_DLQ_TOPIC): must differ from --topic")
	}
	brokers := Items(f.Brokers)
	if len(brokers) == 0 {
		return nil, exit.Usagef("--brokers (KAFKA_BROKERS): names no broker; give HOST:PORT, separated by commas")
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(brokers...),
		kgo.ClientID("projector"),
		kgo.SoftwareNameAndVersion("projector", softwareVersion(f.built.Version)),
		kgo.MetadataMinAge(metadataAge),
		kgo.WithLogger(telemetry.KafkaLogger(log)),
	}
	secure, err := f.options()
	if err != nil {
		return nil, err
	}
	opts = append(opts, secure...)
	for _, broker := range brokers {
		if err := checkBroker(broker); err != nil {
			return nil, err
		}
	}
	if err := kgo.ValidateOpts(opts...); err != nil {
		return nil, exit.Usagef("--brokers (KAFKA_BROKERS): %s", err)
	}
	f.warnClear(log, brokers)
	return opts, nil
}

// OpenKafka connects to the brokers with the options of Client, or fails after OneShotWithin.
func OpenKafka(ctx context.Context, options []kgo.Opt) (*kgo.Client, error) {
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, unreached(err)
	}
	if err := Reach(ctx, client, OneShotWithin); err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

// Reach fails if no broker answers in time. It asks all seed brokers at once, so a frozen broker
// causes no delay.
func Reach(ctx context.Context, client *kgo.Client, within time.Duration) error {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	brokers := client.SeedBrokers()
	answers := make(chan error, len(brokers))
	for _, broker := range brokers {
		go func() {
			request := kmsg.NewPtrMetadataRequest()
			request.Topics = []kmsg.MetadataRequestTopic{} // no topics
			_, err := broker.Request(ctx, request)
			answers <- err
		}()
	}
	var err error
	for range brokers {
		if err = <-answers; err == nil {
			return nil
		}
	}
	seeds, _ := client.OptValue(kgo.SeedBrokers).([]string)
	return unreached(errclass.NoAnswer(ctx, seeds, time.Since(begun).Round(time.Second), err)) // the caller may give it less time
}

func unreached(err error) error {
	return fmt.Errorf("reach Kafka by --brokers (KAFKA_BROKERS): %w", err)
}

// topicName matches the names that Kafka allows for topics.
var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

// checkTopic refuses a name that no topic can have, because a client would wait forever for it.
func checkTopic(flag, name string) error {
	if !topicName.MatchString(name) || name == "." || name == ".." {
		return exit.Usagef("%s: %q is no topic's name; use up to 249 letters, digits, dots, underscores and hyphens", flag, name)
	}
	return nil
}

// checkBroker refuses an invalid address, because a client would retry it forever.
func checkBroker(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil { // no port: the client uses 9092
		host, port = address, "9092"
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 1 || n > 65535 || host == "" || strings.ContainsAny(host, " \t,/:@") && net.ParseIP(host) == nil {
		return exit.Usagef("--brokers (KAFKA_BROKERS): %q is not HOST:PORT", address)
	}
	return nil
}

// softwareVersion replaces the characters of a version that Kafka does not allow.
func softwareVersion(version string) string {
	v := strings.Map(func(r rune) rune {
		if r == '.' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, version)
	return cmp.Or(strings.Trim(v, ".-"), "dev")
}
