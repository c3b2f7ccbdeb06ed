package outboxdemo

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"projector/internal/devstack"
)

// startConnect starts Debezium, then opens the banks: a connector that takes no
// snapshot tells of what happens from the moment on in which it made its slot.
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

// connectEnv is what the connector's configuration takes from the environment.
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

// killLimit is how long it may take until there is something to lose by a kill.
const killLimit = 60 * time.Second

// killConnect kills Connect as soon as it has published enough of every topic that it
// has not written down. With afterWrite it must have written its offsets before, since
// it was started: they are then older than what it has published.
func (s *stage) killConnect(ctx context.Context, afterWrite bool) error {
	known, err := s.connect.OffsetsWrittenAt()
	if err != nil {
		return err
	}
	safe := map[string]int64{} // what may be written down, by topic: nothing before the first write
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

// unwritten tells whether every topic has grown enough.
func (s *stage) unwritten(ends, safe map[string]int64) bool {
	for _, p := range s.pipelines {
		if ends[p.topic]-safe[p.topic] < s.options.Unwritten {
			return false
		}
	}
	return true
}

// ends are the numbers of records in the topics and in their DLQ topics.
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
