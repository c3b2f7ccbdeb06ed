package e2e_test

import (
	"projector/internal/testbank"
	"projector/internal/testbank/compare"
)

const (
	exactlyOnce = compare.ExactlyOnce
	repeated    = compare.Repeated
)

// reader is as whom the world's projector reads.
func (w *world) reader() compare.Reader {
	return compare.Reader{Topic: w.topic, Group: w.group, Projection: "account_balance"}
}

// deadLetters is a check for await: the DLQ holds the oracle's dead letters and no others.
func (w *world) deadLetters(o *testbank.Oracle, allow compare.Repeats) string {
	return w.reader().DeadLetters(w.read(w.dlq), o, allow)
}
