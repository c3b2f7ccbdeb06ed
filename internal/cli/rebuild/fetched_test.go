package rebuild_test

import (
	"testing"

	"projector/internal/cli/clitest"
)

// TestRebuildLeavesFetchedEventsAlone shows that a rebuild preserves a fetched event, which is only
// in the database until Kafka delivers it too.
func TestRebuildLeavesFetchedEventsAlone(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("headless", 2, `"2"`), clitest.EventOf("lost", 1, `"1"`), clitest.EventOf("lost", 3, `"4"`),
		clitest.EventOf("still", 1, `"1"`), clitest.EventOf("still", 3, `"4"`), clitest.EventOf("still", 5, `"16"`), clitest.EventOf("wrong", 1, `"1"`))
	s.Consuming(nil)
	s.Exec("CREATE TABLE outbox (account_id text, version bigint, payload text)")
	for account, e := range map[string]string{
		"headless": clitest.EventOf("headless", 1, `"1"`), "lost": clitest.EventOf("lost", 2, `"2"`), "still": clitest.EventOf("still", 2, `"2"`),
	} {
		s.Exec(`INSERT INTO outbox SELECT $1, ($2::jsonb ->> 'version')::bigint, $2`, account, e)
	}
	s.Must("gaps", "fetch", "--yes", "--outbox-url="+s.URL, "--outbox-query=SELECT account_id AS key, payload AS value FROM outbox "+
		"JOIN unnest($1::text[], $2::bigint[]) AS w (account_id, version) USING (account_id, version)")
	s.Produce(clitest.EventOf("lost", 4, `"8"`))
	s.Consuming(nil)
	right := projected(s)
	clitest.Contains(t, right, "(headless,EUR,3.00,2", "(lost,EUR,15.00,4", "(still,EUR,7.00,3", "(still,5,version_gap")

	const helped = "headless ahead 2 null, lost ahead 4 1, still ahead 3 1"
	clitest.Equal(t, kindsOf(rebuildJSON(s)), helped)
	s.Exec(`UPDATE account_balance SET balance = 99 WHERE account_id = 'wrong'`)
	d := rebuildJSON(s, "--yes", "--remove")
	clitest.Equal(t, kindsOf(d), helped+", wrong different 1 1")
	clitest.Equal(t, clitest.Pick([]map[string]any{d}, "different", "left_alone", "changed", "removed"), "1 3 1 0")
	clitest.Equal(t, projected(s), right)

	s.Produce(clitest.EventOf("headless", 1, `"1"`), clitest.EventOf("lost", 2, `"2"`), clitest.EventOf("still", 2, `"2"`))
	s.Consuming(nil)
	clitest.Equal(t, projected(s), right)
	clean(s)
}

// TestRebuildKeepsAnAccountThatOnlyHasFetchedEvents shows that a rebuild preserves the fetched
// events of an account whose only event in the topic was discarded.
func TestRebuildKeepsAnAccountThatOnlyHasFetchedEvents(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("a", 2, `"none"`))
	s.Consuming(nil)
	s.Exec("CREATE TABLE outbox (account_id text, payload text)")
	s.Exec("INSERT INTO outbox VALUES ('a', $1)", clitest.EventOf("a", 1, `"1"`))
	s.Must("gaps", "fetch", "--yes", "--outbox-url="+s.URL, "--outbox-query=SELECT account_id AS key, payload AS value FROM outbox "+
		"JOIN unnest($1::text[], $2::bigint[]) AS w (account_id, version) USING (account_id)")
	s.Must("dlq", "discard", "--account=a", "--reason=void", "--yes")
	right := projected(s)
	clitest.Contains(t, right, "(a,EUR,1.00,1")

	d := rebuildJSON(s, "--yes", "--remove")
	clitest.Equal(t, kindsOf(d), "a ahead 1 null")
	clitest.Equal(t, projected(s), right)
}
