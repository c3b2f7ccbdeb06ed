//go:build faults

package faulttest

import (
	"slices"
	"testing"
)

// TestFaults tests one fault after the other on one broker.
func TestFaults(t *testing.T) {
	kafka := broker(t)
	run(t, kafka, slices.Concat(crashes(), outages(), replays(), rebuilding(), interrupted(), lostEnds(kafka), brokenBroker(kafka), badData()))
}
