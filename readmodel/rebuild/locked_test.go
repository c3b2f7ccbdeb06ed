package rebuild_test

import (
	"testing"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
)

// summed is a database with the ordered projection, where two events of account a are applied of
// three in the topic.
func summed(t *testing.T) *pair {
	t.Helper()
	for _, d := range definitions(t) {
		if d.ordered && d.Name() != readmodel.BalanceName {
			p := &pair{t: t, fatal: t.Fatal, d: &d, log: log{{credited("a", 1), credited("a", 2), credited("a", 3)}}}
			p.live = newConsumer(d, openPool(t), p.log)
			p.live.to(t, map[int32]int64{0: 2})
			return p
		}
	}
	t.Fatal("no ordered projection")
	return nil
}

// swap rebuilds, and calls locked while the swap holds its locks.
func (p *pair) swap(prepared, locked func()) {
	p.t.Helper()
	_, _, err := p.swapped(func(catchUps int) {
		switch catchUps {
		case locks - 1:
			prepared()
		case locks:
			locked()
		}
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *pair) want(row string) {
	p.t.Helper()
	if got := p.d.state(p.t, p.live.pool)["a"]; got != row {
		p.t.Errorf("account a: %q, want %q", got, row)
	}
}

// TestASwapReplacesRowsThatItsLastRecordsChange: the account is missing, so consumers park its next
// event and do not write its row. The rebuild applies the event while the swap holds its locks.
func TestASwapReplacesRowsThatItsLastRecordsChange(t *testing.T) {
	t.Parallel()
	p := summed(t)
	execute(t, p.live.pool, `DELETE FROM projection_account`)
	p.live = p.restarted()
	p.swap(func() { p.live.to(t, map[int32]int64{0: 3}) }, func() {})
	p.want("3 / 6 / a-1 a-2 a-3")
}

// TestASwapLeavesWhatIsReplayedWhileItHoldsLocks: the rebuilt rows do not have the replayed event.
func TestASwapLeavesWhatIsReplayedWhileItHoldsLocks(t *testing.T) {
	t.Parallel()
	p := summed(t)
	execute(t, p.live.pool, `UPDATE summed SET amount = 9`)
	p.swap(func() {}, func() {
		r := p.record(&projection.Record{Message: event.Message{Value: []byte(credited("a", 3))}})
		r.Action.Kind = readmodel.ActionReplay
		p.apply(p.live, r)
	})
	p.want("3 / 12 / a-1 a-2 a-3")
}
