package telemetry

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// inBubble runs a subtest with a clock that moves only when all goroutines wait.
func inBubble(t *testing.T, name string, fn func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, fn) })
}

func reasons(h *Health) []string {
	_, rs := h.Ready()
	var out []string
	for _, r := range rs {
		out = append(out, r.Condition+": "+r.Reason)
	}
	return out
}

func TestReadiness(t *testing.T) {
	partition := "partition " + topic + "/3"
	cases := []struct {
		name string
		do   func(h *Health)
		want []string
	}{
		{"at start", func(*Health) {}, []string{"projector: starting"}},
		{"started", func(h *Health) { h.Started() }, nil},
		{"a start that waits says for what", func(h *Health) {
			h.Fail("database", "refused")
		}, []string{"database: refused", "projector: starting"}},
		{"sorted by condition", func(h *Health) {
			h.Started()
			h.Fail(partition, "overtaken by retention")
			h.Fail("broker", "gone")
		}, []string{"broker: gone", "partition account-events/3: overtaken by retention"}},
		{"the last reason counts", func(h *Health) {
			h.Started()
			h.Fail("database", "gone")
			h.Fail("database", "no grant\n on\ttable ")
		}, []string{"database: no grant on table"}},
		{"OK ends it", func(h *Health) {
			h.Started()
			h.Fail("database", "gone")
			h.OK("database")
			h.OK("never failed")
		}, nil},
		{"within the grace period", func(h *Health) {
			h.Started()
			h.FailAfter(partition, "retrying", 10*time.Second)
			<-time.After(9 * time.Second)
		}, nil},
		{"after the grace period, without another call", func(h *Health) {
			h.Started()
			h.FailAfter(partition, "retrying", 10*time.Second)
			<-time.After(10 * time.Second)
		}, []string{"partition account-events/3: retrying"}},
		{"repeating does not prolong the grace period", func(h *Health) {
			h.Started()
			h.FailAfter(partition, "retrying", 10*time.Second)
			<-time.After(6 * time.Second)
			h.FailAfter(partition, "still retrying", 10*time.Second)
			<-time.After(4 * time.Second)
		}, []string{"partition account-events/3: still retrying"}},
		{"Fail overrides a grace period", func(h *Health) {
			h.Started()
			h.FailAfter(partition, "retrying", 10*time.Second)
			h.Fail(partition, "stopped")
		}, []string{"partition account-events/3: stopped"}},
		{"stopping is for good", func(h *Health) {
			h.Started()
			h.Stopping()
			h.Started()
		}, []string{"projector: stopping"}},
	}
	for _, tc := range cases {
		inBubble(t, tc.name, func(t *testing.T) {
			t.Helper()
			h := NewHealth()
			tc.do(h)
			if got := reasons(h); !slices.Equal(got, tc.want) {
				t.Errorf("reasons %q, want %q", got, tc.want)
			}
			if ready, _ := h.Ready(); ready != (len(tc.want) == 0) {
				t.Errorf("ready %v with reasons %q", ready, tc.want)
			}
		})
	}
}

func TestReasonKeepsTheTimeOfTheFirstFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHealth()
		h.Started()
		first := time.Now()
		h.Fail("database", "gone")
		<-time.After(time.Minute)
		h.Fail("database", "still gone")
		_, rs := h.Ready()
		if len(rs) != 1 || !rs[0].Since.Equal(first) {
			t.Errorf("reasons %+v, want one since %v", rs, first)
		}
	})
}

func TestLiveness(t *testing.T) {
	cases := []struct {
		name  string
		do    func(h *Health)
		alive bool
	}{
		{"a long start is no reason to restart", func(*Health) { <-time.After(time.Hour) }, true},
		{"nor is a failed condition", func(h *Health) { h.Beat(); h.Fail("database", "gone") }, true},
		{"beating", func(h *Health) {
			for range 10 {
				h.Beat()
				<-time.After(stallAfter)
			}
		}, true},
		{"stalled", func(h *Health) { h.Beat(); <-time.After(stallAfter + time.Second) }, false},
		{"moving again", func(h *Health) { h.Beat(); <-time.After(time.Hour); h.Beat() }, true},
		{"stopping", func(h *Health) { h.Beat(); h.Stopping(); <-time.After(time.Hour) }, true},
	}
	for _, tc := range cases {
		inBubble(t, tc.name, func(t *testing.T) {
			t.Helper()
			h := NewHealth()
			tc.do(h)
			if alive, silence := h.Alive(); alive != tc.alive {
				t.Errorf("alive %v after %v of silence, want %v", alive, silence, tc.alive)
			}
		})
	}
}

func TestHealthIsSafeForConcurrentUse(t *testing.T) {
	h := NewHealth()
	var wg sync.WaitGroup
	for partition := range int32(4) {
		wg.Go(func() {
			name := fmt.Sprint("partition ", partition)
			for range 200 {
				h.Started()
				h.Beat()
				h.Fail(name, "x")
				h.Ready()
				h.Alive()
				h.OK(name)
			}
		})
	}
	wg.Wait()
	if ready, rs := h.Ready(); !ready {
		t.Errorf("not ready: %v", rs)
	}
}
