package dlq_test

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/cli/clitest"
)

// TestEveryDeadLetterOfADiscardedEventIsDiscarded discards one of the two dead letters of an event that
// was read twice. The other one must not apply the event, and a replay takes back the discard of both.
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

// TestAnUnreadableEventIsDiscardedAlone discards one of two unreadable events of a record. They have
// no account and version that could tell them apart.
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

// TestAnotherEventOfADiscardedVersionIsReported discards the parked one of two events of a version.
// The consumer does not know the other one, and the account is not stale because of it. So the
// command has to report it.
func TestAnotherEventOfADiscardedVersionIsReported(t *testing.T) {
	clitest.Ordered(t, func(t *testing.T, s *clitest.Stage, state func() string) {
		t.Helper()
		s.Produce(clitest.EventOf("a", 1, `"1.00"`), clitest.EventOf("a", 3, `"1000000.00"`), clitest.EventOf("a", 3, `"3.00"`), clitest.EventOf("b", 3, `"4.00"`))
		s.Consuming(nil)
		const reported = "not discarded: 1 other event of the same versions."
		discard := []string{"dlq", "discard", "--account=a", "--offset=1", "--reason=void"}
		if plan := s.Must(discard...); !strings.Contains(plan, reported) {
			t.Errorf("the plan does not report the other event: %s", plan)
		}
		if done := s.Must(append(discard, "--yes")...); !strings.Contains(done, reported) {
			t.Errorf("the result does not report the other event: %s", done)
		}
		s.Produce(clitest.EventOf("a", 2, `"2.00"`))
		s.Consuming(nil)
		clitest.Equal(t, state(), "3.00 at 2")
		if plan := s.Must("dlq", "discard", "--account=b", "--reason=void"); strings.Contains(plan, "not discarded") {
			t.Errorf("the plan reports another event: %s", plan)
		}
		s.Must("dlq", "replay", "--status=ready", "--yes")
		clitest.Equal(t, state(), "6.00 at 3")
	})
}
