package outbox_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"projector/internal/devstack/devtest"
	"projector/internal/outbox"
	"projector/projection/event"
)

func TestMain(m *testing.M) { devtest.Main(m, nil) }

// The database of the producer may have other settings for its clients than those that the client of
// the outbox reads.
func TestTheSettingsOfTheOutboxDoNotMatter(t *testing.T) {
	t.Parallel()
	url := devtest.Database(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), `
		CREATE TABLE outbox (account_id text, version bigint, payload bytea);
		INSERT INTO outbox VALUES ('Zoë', 1, '\x00ff');
		DO $$ BEGIN
			EXECUTE format('ALTER DATABASE %I SET bytea_output = ''escape''', current_database());
			EXECUTE format('ALTER DATABASE %I SET client_encoding = ''LATIN1''', current_database());
		END $$`); err != nil {
		t.Fatal(err)
	}
	client := &outbox.Client{URL: url, Query: `SELECT o.account_id AS key, o.payload AS value FROM outbox o
		JOIN unnest($1, $2) AS w (account_id, version) ON o.account_id = w.account_id AND o.version = w.version`}
	defer client.Close()
	rows := 0
	err = client.Ask(t.Context(), []outbox.Version{{AccountID: "Zoë", Number: 1}}, func(m event.Message) error {
		if rows++; string(m.Key) != "Zoë" || string(m.Value) != "\x00\xff" {
			t.Errorf("key %q, value %q", m.Key, m.Value)
		}
		return nil
	})
	if err != nil || rows != 1 {
		t.Errorf("%d rows, error %v", rows, err)
	}
}
