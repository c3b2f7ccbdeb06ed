//go:build kafka

package e2e_test

import (
	"testing"

	"projector/tools/debezium-demo/outbox"
)

// TestDebeziumPublishesAgainAndTheBooksAgree runs simulated banks that move money, and a real
// Debezium that publishes their outboxes. Kafka Connect is killed twice, so Debezium publishes some
// events again.
func TestDebeziumPublishesAgainAndTheBooksAgree(t *testing.T) {
	t.Parallel()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	report, err := outbox.Play(t.Context(), outbox.Options{
		Projector: path, Accounts: 60, Clients: 4, Rate: 100, Unwritten: 150,
		Log: t.Output(), Say: func(what string) { t.Log(what) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range report.Results {
		t.Logf("%s (%s): %d accounts, %d events, %d redelivered",
			result.Topic, result.Pipeline, result.Accounts, result.Events, result.Redelivered())
		if err := result.Check(); err != nil {
			t.Error(err)
		}
	}
}
