package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
)

// TestPositionSetOfSums moves daily_turnover back to records whose event ids are still in its
// inbox. After a part of the inbox is pruned, a move to older records must be refused.
func TestPositionSetOfSums(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.produce(euros(0, "a", 6))
	turnover := "--projection=daily_turnover"
	p := w.start(turnover)
	await(t, "all consumed", w.arrived)
	p.terminate()
	sum := func() string {
		return w.line("SELECT string_agg(concat_ws(' ', credited, events), ',') FROM daily_turnover")
	}
	back := func(status int, why, offset string) {
		t.Helper()
		w.set(status, why, turnover, "--partition=0", "--offset="+offset, "--reason=again", "--yes")
	}
	back(0, "", "0") // allowed, because the inbox was never pruned
	p = w.start(turnover)
	await(t, "all consumed", w.arrived)
	p.terminate()
	if got := sum(); got != "6.00 6" {
		t.Errorf("read again: %s, want 6.00 6", got)
	}

	w.exec("DELETE FROM inbox WHERE message_id IN ('a-1', 'a-2')")
	w.exec("INSERT INTO inbox_pruned VALUES ('daily_turnover', now() - interval '7 days')")
	back(1, "it does from 2 on; nothing was changed", "1")
	back(0, "", "2")
	p = w.start(turnover)
	await(t, "all consumed", w.arrived)
	p.terminate()
	if got := sum(); got != "6.00 6" {
		t.Errorf("read again: %s, want 6.00 6", got)
	}
}

// TestPositionSetWhereALogLostItsEnd moves daily_turnover to the offset where its log ended. This
// is allowed although its inbox was pruned. All records from there on are new, so nothing is
// counted twice.
func TestPositionSetWhereALogLostItsEnd(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	w := newWorldOn(t, d.addrs, devtest.Database(t), 1)
	turnover := "--projection=daily_turnover"
	w.produce(euros(0, "a", 2))
	d.saveLog(w.topic)
	w.produce(euros(0, "lost", 4))
	p := w.start(turnover)
	await(t, "all consumed", w.arrived)
	p.terminate()
	w.exec("DELETE FROM inbox")
	w.exec("INSERT INTO inbox_pruned VALUES ('daily_turnover', now())")
	d.restoreLog(w.topic)
	w.appendBeyondPosition(d)
	d.start()
	p = w.start(turnover)
	await(t, "unready with the reason", p.answers("/readyz", 503, "log lost its end"))

	if s := w.positionStates()[0]; s.State != "stopped" || s.Reason == nil || !strings.Contains(*s.Reason, "lost its end") || *s.Position != 6 {
		t.Errorf("%+v", s)
	}
	// The position is at the old end of the log, so continuing there would skip four new records.
	w.set(1, "4 offsets from 2 on have not been read", turnover, "--partition=0", "--offset=6", "--reason=test", "--yes")
	w.set(1, "it does from 2 on", turnover, "--partition=0", "--offset=1", "--reason=test", "--yes")
	w.set(0, "", turnover, "--partition=0", "--offset=2", "--reason=test", "--yes")
	await(t, "all consumed", w.arrived)
	awaitWithin(t, soon, "ready", p.answers("/readyz", 200, ""))
	if got := w.line("SELECT string_agg(concat_ws(' ', credited, events), ',') FROM daily_turnover"); got != "12.00 12" {
		t.Errorf("%s, want the 6 of before and 6 new ones", got)
	}
	p.terminate()
	w.atRest()
}

// TestPositionOfABatchTooLarge moves the position past a batch that is too large to fetch.
func TestPositionOfABatchTooLarge(t *testing.T) {
	t.Parallel()
	w := newWorldOn(t, devtest.Fake(t, devstack.FakeOptions{}).Addrs(), devtest.Database(t), 1)
	w.produce(euros(0, "a", 2))
	large := &kgo.Record{Topic: w.topic, Value: make([]byte, 2<<20)} // the record is small when it is compressed
	if err := w.client(kgo.ProducerBatchMaxBytes(8<<20)).ProduceSync(t.Context(), large).FirstErr(); err != nil {
		t.Fatal(err)
	}
	w.produce(euros(0, "c", 1))
	p := w.start("--max-batch-bytes=1048576")
	await(t, "unready with the reason", p.answers("/readyz", 503, "batch too large"))
	await(t, "stopped", func() string {
		if s := w.positionStates()[0]; s.State != "stopped" || s.Reason == nil || !strings.Contains(*s.Reason, "batch too large") || s.Owner == nil {
			return fmt.Sprintf("%+v", s)
		}
		return ""
	})
	w.set(0, "", "--partition=0", "--offset=3", "--skip-unread", "--reason=test", "--yes")
	awaitWithin(t, soon, "all consumed", w.arrived)
	await(t, "ready", p.answers("/readyz", 200, ""))
	if s := w.positionStates()[0]; s.State != "running" || s.Reason != nil {
		t.Errorf("%+v", s)
	}
	p.terminate()
	w.atRest()
}
