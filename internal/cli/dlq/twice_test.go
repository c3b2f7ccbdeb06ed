package dlq_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/dlq"
	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
)

// TestEveryDeadLetterOfADiscardedEventIsDiscarded discards one of the two dead letters of an event
// that was read twice. The other one must not apply the event, and a replay revokes the discard of
// both.
func TestEveryDeadLetterOfADiscardedEventIsDiscarded(t *testing.T) {
	clitest.Ordered(t, func(t *testing.T, s *clitest.Stage, state func() string) {
		t.Helper()
		s.Produce(clitest.EventOf("a", 1, `"1.00"`), clitest.EventOf("a", 3, `"1000000.00"`))
		s.Consuming(nil)
		s.Must("position", "set", "--all", "--start", "--reason=again", "--yes")
		s.Consuming(nil)
		letters := s.Lines("dlq", "list")
		clitest.Equal(t, clitest.Statuses(letters), "a 3 waiting, a 3 waiting")

		s.Must("dlq", "discard", "--dlq-partition="+clitest.Pick(letters[1:], "dlq_partition"), "--dlq-offset="+clitest.Pick(letters[1:], "dlq_offset"), "--reason=void", "--yes")
		s.Produce(clitest.EventOf("a", 2, `"2.00"`))
		s.Consuming(nil)
		clitest.Equal(t, state(), "3.00 at 2")
		clitest.Equal(t, clitest.Statuses(s.Lines("dlq", "list")), "a 3 discarded, a 3 discarded")
		clitest.Equal(t, s.Must("dlq", "replay", "--status=open,ready,waiting", "--yes"), "nothing to replay\n")
		clitest.Equal(t, state(), "3.00 at 2")

		s.Must("dlq", "replay", "--status=discarded", "--yes")
		clitest.Equal(t, state(), "1000003.00 at 3")
		clitest.Equal(t, clitest.Statuses(s.Lines("dlq", "list")), "a 3 resolved, a 3 resolved")
	})
}

// TestAnUnreadableEventIsDiscardedAlone discards one of two unreadable events of a record. They
// have no account and version by which they could be distinguished.
func TestAnUnreadableEventIsDiscardedAlone(t *testing.T) {
	s := clitest.NewStage(t)
	s.UseMapping("envelope: {entries: lines}\nfields:\n  eventId: {outer: id}\n")
	s.Produce(`{"id":"e","lines":[{"version":"x"},{"version":"y"},` + clitest.EventOf("a", 3, `"4.00"`) + `]}`)
	s.Consuming(nil)
	letters := s.Lines("dlq", "list")
	clitest.Equal(t, clitest.Pick(letters, "account_id", "status"), "null open, null open, a waiting")

	s.Must("dlq", "discard", "--dlq-partition="+clitest.Pick(letters[:1], "dlq_partition"), "--dlq-offset="+clitest.Pick(letters[:1], "dlq_offset"), "--reason=void", "--yes")
	clitest.Equal(t, clitest.Pick(s.Lines("dlq", "list"), "account_id", "status"), "null discarded, null open, a waiting")
}

// TestAnUnreadableEventFromTheFutureIsDiscarded discards an unreadable event whose timestamp, in
// microseconds instead of milliseconds, is later than the discard.
func TestAnUnreadableEventFromTheFutureIsDiscarded(t *testing.T) {
	s := clitest.NewStage(t)
	s.Append(&kgo.Record{Value: []byte("x"), Timestamp: time.UnixMilli(time.Now().UnixMicro())})
	s.Consuming(nil)
	s.Must("dlq", "discard", "--dlq-partition=0", "--dlq-offset=0", "--reason=void", "--yes")
	clitest.Equal(t, clitest.Pick(s.Lines("dlq", "list"), "status"), "discarded")
}

// TestAnotherEventOfADiscardedVersionIsParked discards the parked one of several events of a
// version. The next one replaces it, so the account stays stale, and the event is applied when its
// turn comes.
func TestAnotherEventOfADiscardedVersionIsParked(t *testing.T) {
	clitest.Ordered(t, func(t *testing.T, s *clitest.Stage, state func() string) {
		t.Helper()
		s.Produce(clitest.EventOf("a", 1, `"1.00"`), clitest.EventOf("a", 3, `"1000000.00"`), clitest.WithID("x", clitest.Undated("a", 3, `"9.00"`)),
			clitest.WithID("y", clitest.EventOf("a", 3, `"3.00"`)), clitest.WithID("z", clitest.EventOf("a", 3, `"5.00"`)), clitest.EventOf("b", 3, `"4.00"`))
		s.Consuming(nil)
		const reported = "not discarded: 3 other events of the same versions. One of each version"
		discard := []string{"dlq", "discard", "--account=a", "--offset=1", "--reason=void"}
		clitest.Contains(t, s.Must(discard...), reported+" would be parked instead.")
		third := s.Lines("dlq", "list", "--account=a", "--offset=3")[0]
		want := fmt.Sprintf("%v/%v", third["dlq_partition"], third["dlq_offset"])
		clitest.Equal(t, clitest.Pick(s.Lines(discard...), "parked", "parked_instead"), "true "+want)
		clitest.Contains(t, s.Must(append(discard, "--yes")...), reported+" is parked instead.")
		waits := func() string {
			return clitest.Pick(s.Lines("gaps"), "account_id", "expected_version", "received_version", "waiting_events")
		}
		clitest.Equal(t, waits(), "b 1 3 1, a 2 3 1")
		if plan := s.Must("dlq", "discard", "--account=b", "--reason=void"); strings.Contains(plan, "not discarded") {
			t.Errorf("the plan reports another event: %s", plan)
		}

		// All records are read again. The discarded event is not parked again.
		s.Must("position", "set", "--all", "--start", "--reason=again", "--yes")
		s.Consuming(nil)
		clitest.Equal(t, waits(), "b 1 3 1, a 2 3 1")
		s.Produce(clitest.EventOf("a", 2, `"2.00"`))
		s.Consuming(nil)
		clitest.Equal(t, state(), "6.00 at 3")
		clitest.Equal(t, waits(), "b 1 3 1")
	})
}

// TestADiscardOfAllEventsOfAVersion discards the events of a version one after the other. The account
// is stale until the last one is discarded. One of them cannot be read, so it waits as the cause of a gap.
func TestADiscardOfAllEventsOfAVersion(t *testing.T) {
	clitest.Ordered(t, func(t *testing.T, s *clitest.Stage, state func() string) {
		t.Helper()
		s.Produce(clitest.EventOf("a", 1, `"1.00"`))
		s.Consuming(nil)
		s.Produce(clitest.EventOf("a", 3, `"1000000.00"`), clitest.WithID("x", clitest.EventOf("a", 3, `"3.00"`)), clitest.WithID("y", clitest.Undated("a", 3, `"9.00"`)))
		s.Consuming(nil)
		waits := func() string {
			return clitest.Pick(s.Lines("gaps"), "account_id", "expected_version", "class", "waiting_events")
		}
		s.Must("dlq", "discard", "--account=a", "--offset=1,2", "--reason=void", "--yes")
		clitest.Equal(t, waits(), "a 2 version_gap 1")
		s.Produce(clitest.EventOf("a", 2, `"2.00"`))
		s.Consuming(nil)
		clitest.Equal(t, state(), "3.00 at 2")
		clitest.Equal(t, waits(), "a 3 malformed_payload 1")
		s.Must("dlq", "discard", "--account=a", "--offset=3", "--reason=void", "--yes")
		clitest.Equal(t, s.Must("gaps"), "no account waits for an event\n")
	})
}

// TestAnotherEventIsAppliedAtOnce discards an event that could not be applied when its turn came. The
// other event of its version can be applied, and nothing else has to arrive for that.
func TestAnotherEventIsAppliedAtOnce(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("a", 1, `"1.00"`), strings.Replace(clitest.EventOf("a", 3, `"9.00"`), "EUR", "USD", 1),
		clitest.Corrected("a", 3, `"3.00"`), clitest.EventOf("a", 2, `"2.00"`))
	s.Consuming(func() {
		const balance = "SELECT coalesce((SELECT balance || ' at ' || version FROM account_balance) = $1, false)"
		s.Await(balance, "3.00 at 2")
		s.Must("dlq", "discard", "--account=a", "--offset=1", "--reason=void", "--yes")
		s.Await(balance, "6.00 at 3")
	})
}

// TestADiscardOfAnEventThatWasParkedAfterThePlan parks the event between the plan and the discard. The
// plan has not shown that a parked event is removed, so the discard changes nothing.
func TestADiscardOfAnEventThatWasParkedAfterThePlan(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("a", 1, `"1.00"`), clitest.EventOf("a", 3, `"3.00"`))
	s.Consuming(nil)
	s.Exec(`WITH removed AS (DELETE FROM parked_event RETURNING *) SELECT * INTO kept FROM removed`)
	s.Exec(`CREATE FUNCTION park() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO parked_event SELECT * FROM kept ON CONFLICT DO NOTHING; RETURN NEW; END $$`)
	s.Exec(`CREATE TRIGGER park BEFORE UPDATE ON projector_position FOR EACH ROW EXECUTE FUNCTION park()`)
	clitest.Contains(t, s.Refused(exit.Failed, "dlq", "discard", "--reason=void", "--yes"), `the event of account "a" version 3 was parked meanwhile; run the command again`)
	clitest.Equal(t, clitest.Pick(s.Lines("dlq", "list"), "status"), "waiting")
}

// TestACopyOfADiscardedEventIsNotParked discards an event that the producer has sent twice. The second
// record must not apply it.
func TestACopyOfADiscardedEventIsNotParked(t *testing.T) {
	clitest.Ordered(t, func(t *testing.T, s *clitest.Stage, state func() string) {
		t.Helper()
		s.Produce(clitest.EventOf("a", 1, `"1.00"`), clitest.EventOf("a", 3, `"1000000.00"`), clitest.EventOf("a", 3, `"1000000.00"`))
		s.Consuming(nil)
		discard := []string{"dlq", "discard", "--account=a", "--offset=1", "--reason=void"}
		clitest.Equal(t, clitest.Pick(s.Lines(discard...), "parked", "parked_instead"), "true null")
		clitest.Contains(t, s.Must(append(discard, "--yes")...), "not discarded: 1 other record with the id and version of a discarded event")
		clitest.Equal(t, s.Must("gaps"), "no account waits for an event\n")
		s.Produce(clitest.EventOf("a", 2, `"2.00"`))
		s.Consuming(nil)
		clitest.Equal(t, state(), "3.00 at 2")
		s.Must("dlq", "replay", "--status=ready", "--yes")
		clitest.Equal(t, state(), "1000003.00 at 3")
	})
}

// TestAnEarlierDiscardIsNotForgotten discards an event, and then the one that was parked instead. A copy
// of the first one is still in the DLQ. The first decision is about the copy, too.
func TestAnEarlierDiscardIsNotForgotten(t *testing.T) {
	clitest.Ordered(t, func(t *testing.T, s *clitest.Stage, state func() string) {
		t.Helper()
		s.Produce(clitest.EventOf("a", 1, `"1.00"`), clitest.EventOf("a", 3, `"1000000.00"`), clitest.WithID("x", clitest.EventOf("a", 3, `"9.00"`)), clitest.EventOf("a", 3, `"1000000.00"`))
		s.Consuming(nil)
		s.Must("dlq", "discard", "--account=a", "--offset=1", "--reason=void", "--yes")
		discard := []string{"dlq", "discard", "--account=a", "--offset=2", "--reason=void"}
		clitest.Equal(t, clitest.Pick(s.Lines(discard...), "parked", "parked_instead"), "true null")
		clitest.Contains(t, s.Must(append(discard, "--yes")...), "not discarded: 1 other record with the id and version of a discarded event")
		s.Produce(clitest.EventOf("a", 2, `"2.00"`))
		s.Consuming(nil)
		clitest.Equal(t, state(), "3.00 at 2")
	})
}

// TestAnotherEventWithoutAValueIsParked discards an event while the other event of its version was too
// large for the DLQ topic. It cannot be applied, so its account waits at this version until it is discarded.
func TestAnotherEventWithoutAValueIsParked(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("a", 1, `"1.00"`), clitest.EventOf("a", 3, `"1000000.00"`), clitest.EventOf("a", 4, `"4.00"`))
	s.Consuming(nil)
	large := projection.DeadLetter{
		Record: projection.Record{Topic: s.Topic, Offset: 7, Message: event.Message{Key: []byte("k"), Value: []byte(clitest.WithID("x", clitest.EventOf("a", 3, `"9.00"`)))}},
		Class:  event.VersionGap, Identified: true, AccountID: "a", EventID: "x", Received: 3, Expected: new(int64(2)),
	}
	cut := dlq.Truncated(large, dlq.Stamp{Group: "account-balance-projector", Projection: readmodel.BalanceName}, s.Topic+".dlq", time.Now(), dlq.WithoutValue)
	if err := s.Client.ProduceSync(t.Context(), cut).FirstErr(); err != nil {
		t.Fatal(err)
	}
	discard := []string{"dlq", "discard", "--account=a", "--offset=1", "--reason=void"}
	clitest.Equal(t, clitest.Pick(s.Lines(discard...), "parked", "parked_instead"), "true 0/2")
	s.Must(append(discard, "--yes")...)
	s.Produce(clitest.EventOf("a", 2, `"2.00"`))
	s.Consuming(nil)
	balance := func() string { return s.Text("SELECT balance || ' at ' || version FROM account_balance") }
	clitest.Equal(t, balance(), "3.00 at 2")
	clitest.Equal(t, clitest.Pick(s.Lines("gaps"), "account_id", "expected_version", "class", "waiting_events"), "a 3 malformed_payload 2")
	s.Must("dlq", "discard", "--account=a", "--offset=7", "--reason=void", "--yes")
	clitest.Equal(t, balance(), "3.00 at 2")
	clitest.Equal(t, clitest.Pick(s.Lines("gaps"), "account_id", "expected_version", "received_version", "waiting_events"), "a 3 4 1")
}

// TestAnotherEventInAnotherPartitionIsParked has the other events of a version in other partitions of
// the DLQ topic, because they have other keys. The first one that can be read is parked instead.
func TestAnotherEventInAnotherPartitionIsParked(t *testing.T) {
	s := clitest.NewStage(t)
	if _, err := kadm.NewClient(s.Client).CreateTopic(t.Context(), 3, -1, nil, s.Topic+".dlq"); err != nil {
		t.Fatal(err)
	}
	s.Produce(clitest.EventOf("a", 1, `"1.00"`), clitest.EventOf("a", 3, `"1000000.00"`))
	s.Append(&kgo.Record{Key: []byte("q"), Value: []byte(clitest.WithID("x", clitest.Undated("a", 3, `"9.00"`)))})
	s.Append(&kgo.Record{Key: []byte("l"), Value: []byte(clitest.WithID("y", clitest.EventOf("a", 3, `"3.00"`)))})
	s.Consuming(nil)
	clitest.Equal(t, clitest.Pick(s.Lines("dlq", "list"), "offset", "dlq_partition"), "2 0, 3 1, 1 2")
	discard := []string{"dlq", "discard", "--account=a", "--offset=1", "--reason=void"}
	clitest.Equal(t, clitest.Pick(s.Lines(discard...), "parked", "parked_instead"), "true 1/0")
	s.Must(append(discard, "--yes")...)
	s.Produce(clitest.EventOf("a", 2, `"2.00"`))
	s.Consuming(nil)
	clitest.Equal(t, s.Text("SELECT balance || ' at ' || version FROM account_balance"), "6.00 at 3")
}
