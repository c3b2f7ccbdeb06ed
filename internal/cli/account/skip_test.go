package account_test

import (
	"fmt"
	"strings"
	"testing"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

func TestSkipOfAnAccountThatDoesNotWait(t *testing.T) {
	clitest.Ordered(t, func(t *testing.T, s *clitest.Stage, state func() string) {
		t.Helper()
		s.Produce(clitest.EventOf("a", 1, `"1.00"`))
		s.Consuming(nil)
		skip := []string{"account", "skip", "a", "--version=2", "--reason=typo"}
		clitest.Contains(t, s.Refused(exit.Failed, skip...), `"a" waits for no event`, "--nothing-waits")
		clitest.Contains(t, s.Refused(exit.Failed, append(skip, "--yes")...), `"a" waits for no event`)
		clitest.Equal(t, state(), "1.00 at 1")

		skip = append(skip, "--nothing-waits")
		clitest.Contains(t, s.Must(skip...), "version 2: nothing is known of its event", "waiting events that would be applied: 0\nthen", "then: version 2")
		clitest.Contains(t, s.Must(append(skip, "--yes")...), "skipped version 2")
		s.Produce(clitest.EventOf("a", 3, `"4.00"`))
		s.Consuming(nil)
		clitest.Equal(t, state(), "5.00 at 3")
	})
}

func TestASkipShowsWhatItWouldDo(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("a", 1, `"1.00"`), clitest.EventOf("a", 3, `"4.00"`), clitest.EventOf("a", 4, `"8.00"`), clitest.EventOf("a", 6, `"32.00"`))
	s.Consuming(nil)
	skip := []string{"account", "skip", "a", "--version=2", "--reason=lost"}
	clitest.Contains(t, s.Must(skip...),
		"now: version 1, balance 1.00 EUR, waits for version 2\n", "version 2: nothing is known of its event\n",
		"waiting events that would be applied: 2\n", "then: version 4, balance 13.00 EUR, waits for version 5\n")

	s.Produce(clitest.EventOf("a", 2, `1.5`))
	s.Consuming(nil)
	clitest.Contains(t, s.Must(skip...), "version 2: its event cannot be applied: malformed_payload, event id a-2, record "+s.Topic+"/0/4\n")
	clitest.Equal(t, s.Must(append(skip, "--output=json")...),
		`{"account_id":"a","version":2,"event_id":"a-2","healed_events":2,"result":null,`+
			`"class":"malformed_payload","topic":"`+s.Topic+`","partition":0,"offset":4,`+
			`"before":{"version":1,"currency":"EUR","balance":1.00,"stale":true},"after":{"version":4,"currency":"EUR","balance":13.00,"stale":true}}`+"\n")
}

// Only version 2 of three missing versions is skipped, so the parked events continue to wait. The
// output must not say that there are none.
func TestASkipOfOneOfSeveralMissingVersions(t *testing.T) {
	clitest.Ordered(t, func(t *testing.T, s *clitest.Stage, state func() string) {
		t.Helper()
		s.Produce(clitest.EventOf("a", 1, `"1.00"`), clitest.EventOf("a", 5, `"4.00"`), clitest.EventOf("a", 6, `"8.00"`), clitest.EventOf("a", 8, `"8.00"`))
		s.Consuming(nil)
		skip := func(version string, more ...string) string {
			return s.Must(append([]string{"account", "skip", "a", "--version=" + version, "--reason=lost"}, more...)...)
		}
		const none, wait = "waiting events that would be applied: 0\n", "waiting events that still wait, for version "
		clitest.Contains(t, skip("2"), none+wait+"3: 3\nthen: version 2")
		clitest.Equal(t, skip("2", "--yes"), "skipped version 2 of account a; waiting events applied: 0\n"+wait+"3: 3\n")
		s.Produce(clitest.Undated("a", 3, `"2.00"`))
		s.Consuming(nil)
		clitest.Contains(t, skip("3"), none+wait+"4: 3\nthen: version 3")
		skip("3", "--yes")
		clitest.Equal(t, skip("4", "--yes"), "skipped version 4 of account a; waiting events applied: 2\n"+wait+"7: 1\n")
		clitest.Equal(t, state(), "13.00 at 6")
		clitest.Equal(t, skip("7", "--yes"), "skipped version 7 of account a; waiting events applied: 1\n")
	})
}

// After a skip, the next event is parked and cannot be applied. No consumer has tried it yet, so it is
// stored as version_gap, which is no reason.
func TestASkipSaysWhyTheNextEventCannotBeApplied(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("a", 1, `"1.00"`), strings.Replace(clitest.EventOf("a", 3, `"2.00"`), "EUR", "USD", 1))
	s.Consuming(nil)
	s.Must("account", "skip", "a", "--version=2", "--reason=lost", "--yes")
	skip := []string{"account", "skip", "a", "--version=3", "--reason=of another account"}
	clitest.Contains(t, s.Must(skip...), "version 3: its event cannot be applied: currency_mismatch, event id a-3")
	s.Must(append(skip, "--yes")...)
	clitest.Equal(t, s.Text("SELECT string_agg(coalesce(class, '-'), ' ' ORDER BY id) FROM dlq_action"), "- currency_mismatch")
}

func TestUnskip(t *testing.T) {
	clitest.Ordered(t, func(t *testing.T, s *clitest.Stage, state func() string) {
		t.Helper()
		unskip := func(version string, more ...string) []string {
			return append([]string{"account", "unskip", "a", "--version=" + version, "--reason=found"}, more...)
		}
		s.Produce(clitest.EventOf("a", 1, `"1.00"`), clitest.EventOf("a", 3, `"4.00"`))
		s.Consuming(nil)
		clitest.Contains(t, s.Refused(exit.Failed, unskip("2", "--yes")...), "no version of it was skipped")
		s.Must("account", "skip", "a", "--version=2", "--reason=lost", "--yes")
		clitest.Equal(t, state(), "5.00 at 3")
		clitest.Contains(t, s.Refused(exit.Failed, unskip("2", "--yes")...), "it is at version 3", "nothing was changed")

		s.Must("account", "skip", "a", "--version=4", "--reason=lost", "--nothing-waits", "--yes")
		clitest.Contains(t, s.Refused(exit.Failed, unskip("2", "--yes")...), "the last version that was skipped is 4, not 2")
		clitest.Contains(t, s.Must(unskip("4")...), "then: version 3", "nothing was changed")
		s.Consuming(func() {
			s.Must(unskip("4", "--yes")...)
			clitest.Equal(t, state(), "5.00 at 3")
			s.Produce(clitest.EventOf("a", 4, `"8.00"`))
			s.Await("SELECT coalesce(sum(next_offset), 0) = $1 FROM projector_position", s.Produced)
		})
		clitest.Equal(t, state(), "13.00 at 4")
		clitest.Contains(t, s.Refused(exit.Failed, unskip("4", "--yes")...), "the last version that was skipped is 2, not 4")
		clitest.Equal(t, clitest.Pick(s.Lines("audit", "--action=unskip"), "version", "reason"), "2 found; no version of it was skipped, "+
			"2 found; it is at version 3: only while nothing was applied after version 2 can the skip be taken back, "+
			"2 found; the last version that was skipped is 4, not 2, 4 found, 4 found; the last version that was skipped is 2, not 4")
		s.Must("audit", "verify")
	})
}

// TestUnskipOfAKnownEvent skips a stored event and then reverses the skip. No other event of the
// account waits.
func TestUnskipOfAKnownEvent(t *testing.T) {
	clitest.Ordered(t, func(t *testing.T, s *clitest.Stage, state func() string) {
		t.Helper()
		s.Produce(clitest.EventOf("a", 1, `"1.00"`), clitest.Undated("a", 2, `"2.00"`))
		s.Consuming(nil)
		before := s.Must("account", "show", "a", "--output=json")
		s.Must("account", "skip", "a", "--version=2", "--reason=lost", "--yes")
		s.Must("account", "unskip", "a", "--version=2", "--reason=found", "--yes")
		clitest.Equal(t, s.Must("account", "show", "a", "--output=json"), before)
		s.Produce(clitest.Corrected("a", 2, `"2.00"`))
		s.Consuming(nil)
		clitest.Equal(t, state(), "3.00 at 2")
	})
}

// TestUnskipBeyondTheParkLimit skips an event that was not parked, because the park limit was
// reached. After the unskip, the account waits for this event again.
func TestUnskipBeyondTheParkLimit(t *testing.T) {
	t.Setenv("PARK_LIMIT", "1")
	clitest.Ordered(t, func(t *testing.T, s *clitest.Stage, state func() string) {
		t.Helper()
		s.Produce(clitest.EventOf("a", 1, `"1.00"`), clitest.EventOf("a", 3, `"4.00"`), clitest.EventOf("a", 4, `"8.00"`))
		s.Consuming(nil)
		s.Produce(clitest.EventOf("a", 2, `"2.00"`))
		s.Consuming(nil)
		clitest.Equal(t, state(), "7.00 at 3")
		before := s.Must("account", "show", "a", "--output=json")
		clitest.Contains(t, before, `"stale":true,"waiting_for_version":4`)
		clitest.Contains(t, s.Must("account", "skip", "a", "--version=4", "--reason=lost", "--yes"), "4")
		s.Must("account", "unskip", "a", "--version=4", "--reason=found", "--yes")
		clitest.Equal(t, s.Must("account", "show", "a", "--output=json"), before)
	})
}

func TestUnskipOfTheFirstVersion(t *testing.T) {
	clitest.Ordered(t, func(t *testing.T, s *clitest.Stage, state func() string) {
		t.Helper()
		s.Produce(clitest.Undated("a", 1, `"1.00"`))
		s.Consuming(nil)
		before := s.Must("account", "show", "a", "--output=json")
		s.Must("account", "skip", "a", "--version=1", "--reason=lost", "--yes")
		s.Must("account", "unskip", "a", "--version=1", "--reason=found", "--yes")
		clitest.Equal(t, s.Must("account", "show", "a", "--output=json"), before)
		s.Produce(clitest.Corrected("a", 1, `"1.00"`))
		s.Consuming(nil)
		clitest.Equal(t, state(), "1.00 at 1")
	})
}

// A rebuild skips the same versions again, except those that were unskipped.
func TestRebuildAfterAnUnskip(t *testing.T) {
	clitest.Ordered(t, func(t *testing.T, s *clitest.Stage, state func() string) {
		t.Helper()
		s.Produce(clitest.EventOf("a", 1, `"1.00"`), clitest.EventOf("b", 1, `"1.00"`))
		s.Consuming(nil)
		for _, account := range []string{"a", "b"} {
			s.Must("account", "skip", account, "--version=2", "--reason=lost", "--nothing-waits", "--yes")
		}
		s.Must("account", "unskip", "a", "--version=2", "--reason=found", "--yes")
		clitest.Contains(t, s.Must("rebuild"), "there is nothing to change")
		s.Produce(clitest.EventOf("a", 2, `"2.00"`))
		s.Consuming(nil)
		clitest.Equal(t, state(), "3.00 at 2")
		s.Must("rebuild", "--yes")
		clitest.Equal(t, state(), "3.00 at 2")
	})
}

func TestAnEventOfASkippedVersionIsReported(t *testing.T) {
	clitest.Ordered(t, func(t *testing.T, s *clitest.Stage, state func() string) {
		t.Helper()
		s.Produce(clitest.EventOf("a", 1, `"1.00"`))
		s.Consuming(nil)
		s.Must("account", "skip", "a", "--version=2", "--reason=lost", "--nothing-waits", "--yes")
		s.Must("account", "skip", "a", "--version=3", "--reason=lost", "--nothing-waits", "--yes")
		run := s.Running()
		metric := `projector_skipped_events_total{projection="` + run.Projection() + `"} `
		run.AwaitMetric(metric + "0")
		s.Produce(clitest.EventOf("a", 2, `"2.00"`), clitest.EventOf("a", 1, `"1.00"`), clitest.EventOf("a", 4, `"8.00"`))
		s.Await("SELECT coalesce(sum(next_offset), 0) = $1 FROM projector_position", s.Produced)
		run.AwaitMetric(metric + "1")
		clitest.Equal(t, state(), "9.00 at 4")
		lines := run.Stop("an event came for a version that was skipped on purpose")
		clitest.Equal(t, clitest.Pick(lines, "account", "version", "topic", "partition", "offset"), "a 2 "+s.Topic+" 0 1")

		s.Must("position", "set", "--all", "--start", "--reason=again", "--yes")
		s.Produce(clitest.EventOf("a", 3, `"2.00"`))
		run = s.Running()
		run.AwaitMetric(metric + "1")
		lines = run.Stop("an event came for a version that was skipped on purpose") // the other version is not reported again
		clitest.Equal(t, clitest.Pick(lines, "version", "offset"), "3 4")
	})
}

// TestADamagedRowIsReportedWithItsAccount shows that the status and the log name the account of an
// invalid row, and that the proposed command names the topic of the consumer. The balance in this
// row has too many decimals for its currency.
func TestADamagedRowIsReportedWithItsAccount(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("acc-damaged", 1, `"1.00"`))
	s.Consuming(nil)
	s.Exec("UPDATE account_balance SET balance = 1.005")
	s.Produce(clitest.EventOf("acc-damaged", 2, `"1.00"`))
	run := s.Running()
	s.Await("SELECT EXISTS (SELECT FROM projector_position)")
	run.AwaitUnready(`the row of account "acc-damaged" cannot be read`)
	s.Must("rebuild", "--yes")
	s.Await("SELECT coalesce(sum(next_offset), 0) = $1 FROM projector_position", s.Produced)
	lines := run.Stop("acc-damaged")
	if text := fmt.Sprint(lines); !strings.Contains(text, "projector rebuild --topic="+s.Topic+" --yes") {
		t.Errorf("the log: %s", text)
	}
}

// A storm of dead letters has stopped the partition, so later events of the account are not read
// yet. A skip applies none of these events, and prints the commands that find them. The events are
// applied when the partition continues.
func TestASkipBeforeAStoppedPartitionIsRead(t *testing.T) {
	t.Setenv("BREAKER_WINDOW", "2")
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("a", 1, `"1.00"`), clitest.EventOf("a", 2, `1.5`), clitest.EventOf("a", 3, `"4.00"`))
	r := s.Running()
	r.AwaitUnready("the breaker is open")
	const where = "dead letters (`projector dlq replay --account=a`) or not read yet (`projector lag`)"
	skip := []string{"account", "skip", "a", "--version=2", "--reason=lost"}
	clitest.Contains(t, s.Must(skip...), "waiting events that would be applied: 0\n", where)
	clitest.Contains(t, s.Must(append(skip, "--yes")...), "waiting events applied: 0\n", where)
	s.Must("resume", "--all", "--through=END", "--reason=x", "--yes")
	s.Await("SELECT coalesce(max(version), 0) = 3 FROM account_balance")
	r.Stop("")
	clitest.Equal(t, s.Text("SELECT balance || ' at ' || version FROM account_balance"), "5.00 at 3")
}
