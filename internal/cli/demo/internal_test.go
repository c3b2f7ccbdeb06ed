package demo

import (
	"bytes"
	"testing"

	"projector/internal/consumer"
	"projector/internal/devstack/devtest"
	"projector/internal/testbank"
	"projector/projection"
)

// A partition that has reached its end is shown as idle if the other partitions are slow. An idle
// partition must still count as finished.
func TestAPartitionThatIsIdleHasConverged(t *testing.T) {
	ends := map[int32]int64{0: 10, 1: 20}
	for state, want := range map[projection.State]bool{
		projection.StateFlowing: true, projection.StateIdle: true, projection.StateThrottled: true,
		projection.StateStarting: false, projection.StateRetrying: false, projection.StateStopped: false,
	} {
		idle, behind := status([]consumer.PartitionStatus{
			{Partition: 0, State: state, Position: 10, Claimed: true},
			{Partition: 1, State: projection.StateFlowing, Position: 20, Claimed: true},
		}, ends)
		if idle != want || behind != 0 {
			t.Errorf("%s: converged %t, %d behind", state, idle, behind)
		}
	}
}

func TestWhatOfTheDemoATerminalShows(t *testing.T) {
	tests := map[string]struct {
		term, noColor string
		colours       bool
	}{
		"a terminal":             {"xterm-256color", "", true},
		"one without colours":    {"xterm-256color", "1", false},
		"one that is dumb":       {"dumb", "", false},
		"one of an unknown kind": {"", "", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TERM", tt.term)
			t.Setenv("NO_COLOR", tt.noColor)
			tty := devtest.Terminal(t)
			if got := newPage(tty, func() {}).colours; got != tt.colours {
				t.Errorf("the page has colours: %v", got)
			}
		})
	}
	t.Setenv("TERM", "xterm-256color")
	t.Setenv("NO_COLOR", "")
	var out bytes.Buffer
	if newPage(&out, func() {}).colours {
		t.Error("a file is taken for a terminal")
	}
}

// The demo's remarks are right for any number, also for 1.
func TestRemarksOfTheDemoAreRightForOne(t *testing.T) {
	d := &demo{ledger: &testbank.Oracle{DeadLetters: make([]testbank.DeadLetter, 1)}}
	f := &findings{repeats: 1, recounted: 1}
	for outcome, want := range map[projection.Outcome]string{
		projection.DeadLettered: "waited and then failed, with a second class: 1, published once more: 1",
		projection.Duplicate:    "came again from Kafka: 1",
	} {
		if got := d.remark(outcome, f); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
