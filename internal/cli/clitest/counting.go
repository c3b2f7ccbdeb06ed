package clitest

// Counting is the file of a custom projection, which counts the events of each account.
const Counting = `-- projection: event_count
-- mode: once
-- types: FundsCredited
-- tables: event_count
INSERT INTO event_count (account_id, events) SELECT account_id, count(*) FROM new_events GROUP BY account_id
ON CONFLICT (account_id) DO UPDATE SET events = event_count.events + EXCLUDED.events;
`

// UseCounting makes the table of Counting, and the stage run this projection. It returns the path of
// the file.
func (s *Stage) UseCounting() (path string) {
	s.T.Helper()
	s.Exec("CREATE TABLE event_count (account_id text PRIMARY KEY, events bigint NOT NULL)")
	return s.UseCustomProjection("event_count", Counting)
}

// Counts returns the rows of Counting, for example "a 3, b 1".
func (s *Stage) Counts() string {
	s.T.Helper()
	return s.Text("SELECT string_agg(account_id || ' ' || events, ', ' ORDER BY account_id) FROM event_count")
}
