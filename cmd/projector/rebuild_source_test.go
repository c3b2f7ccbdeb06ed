package main

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// recreate deletes the topic and creates it again, without its records, and does what
// the runbook says then: the group begins at the first record of the new one.
func (s *stage) recreate() {
	s.t.Helper()
	admin := kadm.NewClient(s.client)
	if _, err := admin.DeleteTopic(s.t.Context(), s.topic); err != nil {
		s.t.Fatal(err)
	}
	if _, err := admin.DeleteGroups(s.t.Context(), "account-balance-projector"); err != nil {
		s.t.Fatal(err)
	}
	s.exec("DELETE FROM projector_position")
	if _, err := admin.CreateTopic(s.t.Context(), 1, -1, nil, s.topic); err != nil {
		s.t.Fatal(err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(s.addrs...)) // the other one knows the old topic
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(client.Close)
	s.client, s.produced = client, 0
}

// After "topic recreated" the topic does not have the history of most accounts. That is
// no reason to remove them.
func TestRebuildRefusesATopicThatTheRowsDidNotComeFrom(t *testing.T) {
	s := newStage(t)
	for n := range 8 {
		s.produce(eventOf(fmt.Sprintf("acc-%d", n), 1, `"1"`))
	}
	s.consuming(nil)
	s.recreate()
	for n := range 4 {
		s.produce(eventOf(fmt.Sprintf("acc-%d", n), 1, `"1"`))
	}
	s.consuming(nil)
	right := s.projected()

	const remedy = "DELETE FROM projector_source"
	contains(t, s.refused(exitFailed, "rebuild", "--yes"), "another topic of this name", remedy)
	equal(t, s.projected(), right)
	s.exec("DELETE FROM projector_position") // the next start finds nothing
	s.consuming(nil)
	contains(t, s.refused(exitFailed, "rebuild", "--yes"), remedy)

	// Somebody knows better.
	s.exec(`DELETE FROM projector_source s USING projector_position p WHERE s.topic = p.topic AND s.topic_id <> p.topic_id`)
	equal(t, kindsOf(s.rebuildJSON()), "acc-4 unknown 1 null, acc-5 unknown 1 null, acc-6 unknown 1 null, acc-7 unknown 1 null")
}

// Rows that came from a topic of another name stay known, too.
func TestRebuildRemembersOtherTopics(t *testing.T) {
	s := newStage(t)
	s.produce(eventOf("a", 1, `"1"`))
	s.consuming(nil)
	s.exec(`INSERT INTO projector_source SELECT projection, 'elsewhere', 'id' FROM projector_source`)
	contains(t, s.refused(exitFailed, "rebuild", "--yes"), "topic elsewhere", "projector_source")
	s.must("rebuild", "--partial")
	s.exec(`UPDATE projector_source SET projection = 'daily_turnover' WHERE topic = 'elsewhere'`)
	s.clean()
}
