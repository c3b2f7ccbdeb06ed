package e2e_test

import (
	"projector/internal/testbank"
	"projector/internal/testbank/compare"
)

const (
	exactlyOnce = compare.ExactlyOnce
	repeated    = compare.Repeated
)

// reader returns the topic, group and projection of the test for the functions of package compare.
func (w *world) reader() compare.Reader {
	return compare.Reader{Topic: w.topic, Group: w.group, Projection: "account_balance"}
}

// deadLetters compares the DLQ with the dead letters of the oracle. It returns "" if they are
// equal.
func (w *world) deadLetters(o *testbank.Oracle, allow compare.Repeats) string {
	return w.reader().DeadLetters(w.read(w.dlq), o, allow)
}
