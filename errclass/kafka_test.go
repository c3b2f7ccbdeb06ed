package errclass_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/errclass"
	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
)

// publish publishes one record to topic with a client that has the given options, and returns the
// error. The client gives up after one attempt and not after a time, because on a busy machine the
// time may be over before the first attempt.
func publish(t *testing.T, addrs []string, topic string, size int, options ...kgo.Opt) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(addrs...), kgo.RetryTimeout(time.Second), kgo.RecordRetries(0), kgo.UnknownTopicRetries(0),
	}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	outcome := make(chan error, 1)
	record := &kgo.Record{Topic: topic, Value: []byte(strings.Repeat("4711", size/4))}
	client.Produce(ctx, record, func(_ *kgo.Record, err error) { outcome <- err })
	select {
	case err := <-outcome:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func checkKafka(t *testing.T, err error, want classified) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	err = fmt.Errorf("publish dead letter: %w", err)
	safe := errclass.Safe(err)
	t.Log(safe)
	if got := errclass.Kafka(err); got != want.class {
		t.Errorf("class %v, want %v (%v)", got, want.class, err)
	}
	if got := errclass.Reason(err); got != want.reason {
		t.Errorf("reason %s, want %s", got, want.reason)
	}
	if !strings.Contains(safe, want.says) || strings.Contains(safe, "4711") || strings.Contains(safe, "hunter2") {
		t.Errorf("%q: want it to say %q and no secret", safe, want.says)
	}
}

func TestPublishingFails(t *testing.T) {
	broker := devtest.Fake(t, devstack.FakeOptions{
		Topics: map[string]int32{"events": 1}, Settings: map[string]string{"message.max.bytes": "1000"},
	}).Addrs()
	for _, c := range []struct {
		name  string
		addrs []string
		topic string
		want  classified
	}{
		{"no topic", broker, "missing", classified{errclass.RetryUnready, "UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC"}},
		{"nobody there", []string{"127.0.0.1:1"}, "events", classified{errclass.Retry, "connect", "connection refused"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			checkKafka(t, publish(t, c.addrs, c.topic, 100), c.want)
		})
	}
	t.Run("too large", func(t *testing.T) {
		err := publish(t, broker, "events", 100_000, kgo.ProducerBatchCompression(kgo.NoCompression()))
		checkKafka(t, err, classified{errclass.RetryUnready, "MESSAGE_TOO_LARGE", "MESSAGE_TOO_LARGE"})
		if !errclass.TooLarge(err) {
			t.Error("not reported as too large")
		}
	})
}

// TestLoginMissing shows the class of the error if the client does not log in and the broker closes
// the connection. kfake also closes the connection after a wrong password, while a real broker
// answers with an error code.
func TestLoginMissing(t *testing.T) {
	guarded := devtest.Fake(t, devstack.FakeOptions{More: []kfake.Opt{kfake.EnableSASL()}})
	client, err := kgo.NewClient(kgo.SeedBrokers(guarded.Addrs()...), kgo.RetryTimeout(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	checkKafka(t, client.Ping(t.Context()), classified{errclass.RetryUnready, "first_read_eof", "is SASL missing?"})
}
