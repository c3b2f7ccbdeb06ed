package e2e_test

import (
	"projector/e2e/judge"
	"projector/e2e/oracle"
)

const (
	exactlyOnce = judge.ExactlyOnce
	repeated    = judge.Repeated
)

// reader is as whom the world's projector reads.
func (w *world) reader() judge.Reader {
	return judge.Reader{Topic: w.topic, Group: w.group, Projection: "account_balance"}
}

// deadLetters is a check for await: the DLQ holds the oracle's letters and no others.
func (w *world) deadLetters(o *oracle.Oracle, allow judge.Repeats) string {
	return w.reader().DeadLetters(w.read(w.dlq), o, allow)
}
