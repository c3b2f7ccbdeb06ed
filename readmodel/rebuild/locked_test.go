package rebuild_test

import (
	"errors"
	"slices"
	"testing"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/readmodeltest"
	"projector/readmodel/rebuild"
)

// The function consumed returns a database with a projection. All events of account a in the topic
// are consumed, except the last one.
func consumed(t *testing.T, name string, versions ...int64) *pair {
	t.Helper()
	all := definitions(t)
	i := slices.IndexFunc(all, func(d definition) bool { return d.Name() == name })
	if i < 0 {
		t.Fatalf("no projection %s", name)
	}
	p := &pair{t: t, fatal: t.Fatal, d: &all[i], log: log{nil}}
	for _, version := range versions {
		p.log[0] = append(p.log[0], credited("a", version))
	}
	p.live = newConsumer(all[i], openPool(t), p.log)
	p.live.consumeTo(t, map[int32]int64{0: int64(len(versions) - 1)})
	return p
}

// swap rebuilds the projection. It calls prepared before the swap has its locks, and locked while
// the swap holds its locks.
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

// In TestASwapReplacesRowsThatItsLastRecordsChange, the row with the account's version is deleted
// from projection_account. Consumers therefore park the account's next event and do not write its
// row in the table of the projection. The rebuild applies the event while the swap holds its locks.
func TestASwapReplacesRowsThatItsLastRecordsChange(t *testing.T) {
	t.Parallel()
	p := consumed(t, "summed", 1, 2, 3)
	execute(t, p.live.pool, `DELETE FROM projection_account`)
	p.live = p.restarted()
	p.swap(func() { p.live.consumeTo(t, map[int32]int64{0: 3}) }, func() {})
	p.want("3 / 6 / a-1 a-2 a-3")
}

// TestASwapLeavesWhatIsReplayedWhileItHoldsLocks shows that a row with a replayed event is not
// replaced, because the rebuilt row does not have this event.
func TestASwapLeavesWhatIsReplayedWhileItHoldsLocks(t *testing.T) {
	t.Parallel()
	p := consumed(t, "summed", 1, 2, 3)
	execute(t, p.live.pool, `UPDATE summed SET amount = 9`)
	p.swap(func() {}, func() {
		r := p.record(&projection.Record{Message: event.Message{Value: []byte(credited("a", 3))}})
		r.Action.Kind = readmodel.ActionReplay
		p.apply(p.live, r)
	})
	p.want("3 / 12 / a-1 a-2 a-3")
}

// In TestASwapMarksWhatItsLastRecordsCount, a constraint prevents consumers from applying an event.
// After the constraint is dropped, the rebuild applies the event while the swap holds its locks.
// The event must be marked, because otherwise a replay would count it again.
func TestASwapMarksWhatItsLastRecordsCount(t *testing.T) {
	t.Parallel()
	p := consumed(t, "counted", 1, 200)
	execute(t, p.live.pool, `UPDATE counted SET amount = 9`)
	p.swap(func() {
		p.live.consumeTo(t, map[int32]int64{0: 2})
		execute(t, p.live.pool, `ALTER TABLE counted DROP CONSTRAINT counted_amount_check; ALTER TABLE projector_rebuild.counted DROP CONSTRAINT counted_amount_check`)
	}, func() {})
	p.want("2 201")
	var marked bool
	if err := p.live.pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM inbox WHERE message_id = 'a-200')`).Scan(&marked); err != nil || !marked {
		t.Errorf("a-200 is marked: %t, %v", marked, err)
	}
}

// TestASwapMarksNoEventOfARowThatItLeavesAlone shows that a swap is rolled back if it would mark an
// event of an account in the inbox without changing the account. It would leave the account alone
// because another event of the account was replayed meanwhile.
func TestASwapMarksNoEventOfARowThatItLeavesAlone(t *testing.T) {
	t.Parallel()
	p := consumed(t, "counted", 1, 200, 300)
	execute(t, p.live.pool, `UPDATE counted SET amount = 9; INSERT INTO counted VALUES ('phantom', 1, 1)`)
	_, _, err := p.swapped(func(catchUps int) {
		switch catchUps {
		case locks - 1:
			p.live.consumeTo(t, map[int32]int64{0: 3})
			execute(t, p.live.pool, `ALTER TABLE counted DROP CONSTRAINT counted_amount_check; ALTER TABLE projector_rebuild.counted DROP CONSTRAINT counted_amount_check`)
		case locks:
			r := p.record(&projection.Record{Message: event.Message{Value: []byte(credited("a", 200))}})
			r.Action.Kind = readmodel.ActionReplay
			p.apply(p.live, r)
		}
	})
	if !errors.Is(err, rebuild.ErrRepairedSince) {
		t.Errorf("the error is %v", err)
	}
	p.want("2 209")
	var marked bool
	if err := p.live.pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM inbox WHERE message_id = 'a-300')`).Scan(&marked); err != nil || marked {
		t.Errorf("a-300 is marked: %t, %v", marked, err)
	}
}

// TestASwapKeepsWhatAnotherGroupWrites starts another consumer group while the swap holds the locks
// of the positions. Rows that this group writes must not be replaced by rows without its events.
func TestASwapKeepsWhatAnotherGroupWrites(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ damage, want string }{
		"daily_turnover": {`UPDATE daily_turnover SET credited = 99`, "6.00 0.00 3"},
		"counted":        {`UPDATE counted SET amount = 50`, "3 6"},
		"summed":         {`UPDATE summed SET amount = 9`, "3 / 6 / a-1 a-2 a-3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := consumed(t, name, 1, 2, 3)
			execute(t, p.live.pool, c.damage)
			all := map[int32]int64{0: 3}
			other, done := newConsumerOf(p.d, p.live.pool, p.log, "other"), make(chan error, 1)
			p.swap(func() {}, func() {
				go func() { done <- other.build.Advance(t.Context(), all, nil) }()
				readmodeltest.AwaitLock(t, p.live.pool, 1, func() bool { return len(done) > 0 })
			})
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			p.live.consumeTo(t, all)
			for _, got := range p.d.state(t, p.live.pool) {
				if got != c.want {
					t.Errorf("%s, want %s", got, c.want)
				}
			}
		})
	}
}
