package e2e_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"projector/internal/testbank"
)

// TestTopicRecreated deletes and recreates the topic while the projector runs. The stored offsets
// have no meaning in the new topic, so the projector must not consume it.
func TestTopicRecreated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.produce(w.shortStream())
	o := w.oracle()
	p := w.start()
	w.exact(o, exactlyOnce)
	written := w.physical()
	w.recreateTopic()
	w.produce(w.shortStream())
	w.staysStopped(p, "topic", written)
	p.terminate()

	again := w.start()
	w.staysStopped(again, "topic", written)
	again.terminate()

	// The operator sets the position to the first record of the new topic, as the runbook says.
	for _, s := range w.positionStates() {
		if s.State != "stopped" || s.Reason == nil || !strings.Contains(*s.Reason, "topic recreated") {
			t.Errorf("%+v", s)
		}
	}
	w.set(1, "--new-topic", "--all", "--start", "--reason=recreated", "--yes")
	w.set(1, "--skip-unread", "--all", "--end", "--new-topic", "--reason=recreated", "--yes")
	w.set(0, "", "--all", "--start", "--new-topic", "--reason=recreated", "--yes")
	mended := w.start()
	await(t, "every record of the new topic consumed", w.arrived)
	await(t, "ready", mended.answers("/readyz", 200, ""))
	mended.terminate()
	w.atRest()
}

// TestRunningConsumersObeyInARecreatedTopic sets the positions while two instances run. Both
// instances still use the id of the deleted topic.
func TestRunningConsumersObeyInARecreatedTopic(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.produce(euros(0, "a", 5))
	p, other := w.start(), w.start()
	await(t, "all consumed", w.arrived)
	w.recreateTopic()
	w.produce(euros(0, "b", 3))
	w.produce(euros(1, "c", 4))
	await(t, "it is known to be another topic", func() string {
		for _, s := range w.positionStates() {
			if s.State != "stopped" {
				return s.State
			}
		}
		return ""
	})
	w.set(0, "", "--all", "--start", "--new-topic", "--reason=recreated", "--yes")
	awaitWithin(t, soon, "obeyed", func() string {
		if b, c := w.versionOf("b"), w.versionOf("c"); b != 3 || c != 4 {
			return fmt.Sprintf("versions %d and %d", b, c)
		}
		return ""
	})
	await(t, "ready", p.answers("/readyz", 200, ""))
	await(t, "ready", other.answers("/readyz", 200, ""))
	p.terminate()
	w.produce(euros(1, "d", 2))
	await(t, "all consumed", w.arrived)
	other.terminate()
	w.atRest()
}

func (w *world) recreateTopic() {
	w.t.Helper()
	if _, err := w.admin.DeleteTopic(w.t.Context(), w.topic); err != nil {
		w.t.Fatal(err)
	}
	await(w.t, "the topic is gone", w.topicHas(0))
	w.createTopic(w.t, w.topic, w.partitions, nil)
	await(w.t, "the topic is there", w.topicHas(int(w.partitions)))
}

// topicHas returns a check for await. It succeeds when the topic has n partitions that accept
// records.
func (w *world) topicHas(n int) func() string {
	return func() string {
		topics, err := w.admin.ListTopics(w.t.Context(), w.topic)
		if err != nil {
			return err.Error()
		}
		led := 0
		for _, p := range topics[w.topic].Partitions {
			if p.Err == nil && p.Leader >= 0 {
				led++
			}
		}
		if led != n {
			return fmt.Sprintf("%d partitions", led)
		}
		return ""
	}
}

// staysStopped expects an error in the log, unready partitions, and no writes.
func (w *world) staysStopped(p *program, reason string, written map[string]string) {
	w.t.Helper()
	await(w.t, "a loud line", p.logged(`"level":"ERROR"`, "partition stopped", reason))
	await(w.t, "unready", p.answers("/readyz", 503, reason))
	if status, body := p.get("/livez"); status != 200 {
		w.t.Errorf("/livez: a restart would not help, but: %d %s", status, body)
	}
	if !maps.Equal(written, w.physical()) {
		w.t.Error("rows were written from offsets that mean nothing")
	}
}

// TestPositionExpired lets retention delete records that are not yet consumed.
func TestPositionExpired(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	first, second := w.shortStream(), w.shortStream()
	w.produce(first)
	p := w.start()
	await(t, "the first half consumed", w.arrived)
	p.terminate()
	half := w.positions()
	w.produce(second)
	cut := half[0] + 5
	offsets := kadm.Offsets{}
	offsets.AddOffset(w.topic, 0, cut, -1)
	if _, err := w.admin.DeleteRecords(t.Context(), offsets); err != nil {
		t.Fatal(err)
	}

	p = w.start()
	ends := w.ends(w.topic)
	await(t, "the other partition goes on", func() string {
		if at := w.positions(); at[1] != ends[1] {
			return fmt.Sprintf("positions %v, ends %v", at, ends)
		}
		return ""
	})
	await(t, "a loud line", p.logged(`"level":"ERROR"`, "partition stopped", "retention"))
	await(t, "unready with the reason", p.answers("/readyz", 503, "retention"))
	if at := w.positions(); at[0] != half[0] {
		t.Errorf("partition 0 went on from %d to %d as if nothing were lost", half[0], at[0])
	}

	// An operator accepts the loss, and the partition continues without a restart.
	w.set(0, "", "--partition=0", "--start", "--reason=retention", "--yes")
	await(t, "every record consumed that is left", w.arrived)
	awaitWithin(t, soon, "ready", p.answers("/readyz", 200, ""))
	p.terminate()
	w.atRest()
}

// TestGapsOfALossAreExpected lets retention delete records of every account. Every account then has
// a gap until the test sends the deleted records again, as an outbox of the producer would. The
// operator resumes the partition with --through, as the runbook says. The breaker must then not
// stop the partition.
func TestGapsOfALossAreExpected(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	const accounts = 60
	rounds := make([][]testbank.Record, 4) // the round with index i has version i+1 of each account
	for i := range accounts {
		for v, r := range euros(0, fmt.Sprint("a", i), len(rounds)) {
			rounds[v] = append(rounds[v], r)
		}
	}
	w.produce(rounds[0])
	p := w.start()
	await(t, "the first versions", w.durable(0, accounts))
	p.terminate()
	for _, lost := range [][]testbank.Record{rounds[1], rounds[2], rounds[3], rounds[1]} {
		w.produce(lost)
	}
	offsets := kadm.Offsets{}
	offsets.AddOffset(w.topic, 0, 2*accounts, -1)
	if _, err := w.admin.DeleteRecords(t.Context(), offsets); err != nil {
		t.Fatal(err)
	}
	p = w.start("--breaker-window=20")
	await(t, "unready with the reason", p.answers("/readyz", 503, "retention"))
	resume := []string{"--partition=0", "--through=" + fmt.Sprint(5*accounts), "--reason=gaps of the loss"}
	if _, would, _ := w.command("resume", resume...); !strings.Contains(would, "partition 0: would be resumed, records below 300 do not count for the breaker") {
		t.Errorf("without --yes: %s", would)
	}
	w.statesAfter("resume", append(resume, "--yes")...)
	w.set(0, "", "--partition=0", "--start", "--reason=retention", "--yes")
	await(t, "every record consumed that is left", w.arrived)
	await(t, "ready", p.answers("/readyz", 200, ""))
	right := w.line("SELECT count(*)::text FROM account_balance_current WHERE version = 4 AND balance = 4 AND NOT stale")
	if letters := len(w.deadLetterOffsets(0)); right != fmt.Sprint(accounts) || letters != 2*accounts {
		t.Errorf("%s of %d accounts are right, %d dead letters, want %d", right, accounts, letters, 2*accounts)
	}
	p.terminate()
}

// TestNewGroupBeginsAtTheFirstRecord uses a partition whose first record is not at offset 0.
func TestNewGroupBeginsAtTheFirstRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.produce(testbank.Generate(testbank.Options{Seed: seed(t), Records: 300, Partitions: 1, Accounts: 30, Clean: true}))
	offsets := kadm.Offsets{}
	offsets.AddOffset(w.topic, 0, 100, -1)
	if _, err := w.admin.DeleteRecords(t.Context(), offsets); err != nil {
		t.Fatal(err)
	}
	p := w.start()
	w.exact(w.oracle(), exactlyOnce)
	p.terminate()
	w.atRest()
}
