package clitest

import (
	"fmt"
	"strings"
	"testing"
)

// orderedFile is a custom projection that stores the sum of each account, as account_balance does.
const orderedFile = `-- projection: points
-- mode: ordered
-- types: FundsCredited
-- tables: points
INSERT INTO points (account_id, points)
SELECT account_id, sum((data->>'amount')::numeric) FROM new_events GROUP BY account_id
ON CONFLICT (account_id) DO UPDATE SET points = points.points + EXCLUDED.points;
`

// The statement others inserts rows of other projections into the tables that custom projections
// share. These rows have the same accounts, versions and records as the rows of the tests. The
// commands in the tests must not change them.
const others = `WITH
	other AS (SELECT 'other ' || n AS projection, n AS "offset", account_id FROM generate_series(0, 9) AS n, unnest('{a,b}'::text[]) AS account_id),
	account AS (INSERT INTO projection_account (projection, account_id, version) SELECT projection, account_id, 1 FROM other),
	overflow AS (INSERT INTO projection_park_overflow (projection, account_id, lowest_version, highest_version, events, expected_version)
		SELECT projection, account_id, 3, 3 + "offset", 1 + "offset", 2 FROM other)
	INSERT INTO projection_parked_event (projection, account_id, version, class, event_id, expected_version, topic, partition, "offset", record_timestamp, headers)
	SELECT projection, account_id, version, 'version_gap', version, 2, $1::text, 0, "offset", 0, '{}' FROM other, generate_series(3, 9) AS version`

const ofOthers = `SELECT concat_ws(' ',
	(SELECT string_agg(a::text, ' ' ORDER BY a::text) FROM projection_account a WHERE projection <> 'points'),
	(SELECT string_agg(o::text, ' ' ORDER BY o::text) FROM projection_park_overflow o WHERE projection <> 'points'),
	(SELECT md5(string_agg(p::text, ' ' ORDER BY p::text)) FROM projection_parked_event p WHERE projection <> 'points'))`

// Ordered runs a test for account_balance and for a custom projection, which both park events. The
// test receives the function state. This function returns a text with the sum of account a and the
// account's version.
func Ordered(t *testing.T, run func(t *testing.T, s *Stage, state func() string)) {
	t.Helper()
	t.Run("account_balance", func(t *testing.T) {
		s := NewStage(t)
		run(t, s, func() string {
			return s.Text("SELECT balance || ' at ' || version FROM account_balance WHERE account_id = 'a'")
		})
	})
	t.Run("custom", func(t *testing.T) {
		s := NewStage(t)
		s.Exec("CREATE TABLE points (account_id text PRIMARY KEY, points numeric NOT NULL)")
		s.Exec("GRANT SELECT, INSERT, UPDATE ON points TO PUBLIC")
		s.UseCustomProjection("points", orderedFile)
		s.Exec(others, s.Topic)
		before := s.Text(ofOthers)
		run(t, s, func() string {
			return s.Text("SELECT points || ' at ' || version FROM points JOIN projection_account USING (account_id) WHERE projection = 'points' AND account_id = 'a'")
		})
		Equal(t, s.Text(ofOthers), before)
	})
}

// Undated returns an event with an invalid time and a readable version.
func Undated(account string, version int, amount string) string {
	return strings.Replace(EventOf(account, version, amount), "2026-01-01T00:00:00.5Z", "never", 1)
}

// Corrected returns the same event as EventOf, but with another id.
func Corrected(account string, version int, amount string) string {
	return WithID(fmt.Sprintf("%s-%d-corrected", account, version), EventOf(account, version, amount))
}

// WithID returns an event of EventOf or Undated with another id.
func WithID(id, event string) string {
	_, rest, _ := strings.Cut(event, `,"eventType"`)
	return `{"eventId":"` + id + `","eventType"` + rest
}

// Text returns the text that a query selects.
func (s *Stage) Text(query string, args ...any) (text string) {
	s.T.Helper()
	if err := s.Pool.QueryRow(s.T.Context(), query, args...).Scan(&text); err != nil {
		s.T.Fatalf("%v\n%s", err, query)
	}
	return text
}
