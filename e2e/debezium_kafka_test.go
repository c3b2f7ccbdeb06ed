//go:build kafka

package e2e_test

import (
	"testing"

	"projector/tools/debezium-demo/outbox"
)

// TestDebeziumPublishesAgainAndTheBooksAgree has banks move money, the real Debezium
// publish their outboxes, and Kafka Connect killed twice while they do.
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
