package rebuild_test

import (
	"projector/internal/cli/clitest"
)

// rowsOf returns the rows of a projection without their time of writing.
func rowsOf(s *clitest.Stage, name string) string {
	s.T.Helper()
	return s.Text(map[string]string{
		"account_balance": `SELECT concat_ws(E'\n',
			(SELECT string_agg(ROW (account_id, currency, balance, version, status, last_event_id, last_event_at)::text, E'\n' ORDER BY account_id)
			 FROM account_balance),
			(SELECT string_agg(ROW (account_id, version, class, event_id, topic, partition, "offset", value)::text, E'\n' ORDER BY account_id, version)
			 FROM parked_event),
			(SELECT string_agg(ROW (account_id, lowest_version, highest_version, events)::text, E'\n' ORDER BY account_id) FROM park_overflow))`,
		"account_statement": `SELECT coalesce(string_agg(ROW (s.*)::text, E'\n' ORDER BY account_id COLLATE "C", version), '') FROM account_statement s`,
		"daily_turnover":    `SELECT coalesce(string_agg(ROW (t.*)::text, E'\n' ORDER BY day, currency), '') FROM daily_turnover t`,
		"inbox":             `SELECT coalesce(string_agg(message_id, ' ' ORDER BY message_id COLLATE "C"), '') FROM inbox`,
	}[name])
}

// The function projected returns all rows of the projection account_balance.
func projected(s *clitest.Stage) string {
	s.T.Helper()
	return rowsOf(s, "account_balance")
}

func rebuildJSON(s *clitest.Stage, args ...string) map[string]any {
	s.T.Helper()
	lines := s.Lines(append([]string{"rebuild"}, args...)...)
	if len(lines) != 1 {
		s.T.Fatalf("%d documents", len(lines))
	}
	return lines[0]
}

func differencesOf(document map[string]any) []map[string]any {
	var all []map[string]any
	for _, d := range document["differences"].([]any) {
		all = append(all, d.(map[string]any))
	}
	return all
}

// kindsOf returns the differing accounts and their differences, in the order of the list.
func kindsOf(document map[string]any) string {
	return clitest.Pick(differencesOf(document), "account_id", "kind", "version", "rebuilt_version")
}

// The function clean expects that a rebuild finds no difference and leaves no schema
// projector_rebuild.
func clean(s *clitest.Stage, args ...string) {
	s.T.Helper()
	if d := rebuildJSON(s, args...); d["different"] != 0.0 || d["left_alone"] != 0.0 {
		s.T.Errorf("the rebuilt balances are not the live ones: %v", d)
	}
	var left int
	if err := s.Pool.QueryRow(s.T.Context(), "SELECT count(*) FROM pg_namespace WHERE nspname = 'projector_rebuild'").Scan(&left); err != nil || left != 0 {
		s.T.Errorf("%d schemas are left, %v", left, err)
	}
}
