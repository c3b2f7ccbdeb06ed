//go:build faults

package faulttest

import (
	"slices"
	"testing"

	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
)

// TestFaults strikes one fault after the other on one broker.
func TestFaults(t *testing.T) {
	kafka := devtest.Kafka(t, devstack.KafkaOptions{})
	run(t, kafka, slices.Concat(crashes(), outages(), brokenBroker(kafka), badData()))
}
