package registry

import (
	"testing"
	"testing/synctest"
	"time"
)

// After a hundred unreadable ids in a row, at most a hundred ids are requested each second. After a
// readable id, the next hundred ids are requested at once.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked turns
		ask := func(n int) time.Duration {
			began := time.Now()
			for range n {
				if err := asked.await(t.Context()); err != nil {
					t.Fatal(err)
				}
				asked.unreadable()
			}
			return time.Since(began)
		}
		if took := ask(freeTurns); took != 0 {
			t.Errorf("the first wait %s", took)
		}
		if took := ask(201); took != 200*betweenTurns {
			t.Errorf("the next 201 take %s", took)
		}
		asked.restart()
		if took := ask(freeTurns); took != 0 {
			t.Errorf("after one that was readable they wait %s", took)
		}
	})
}
