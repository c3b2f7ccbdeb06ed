package e2e_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
	"projector/internal/testbank"
	"projector/internal/testbank/compare"
)

// TestLargeDeadLetterIsCut sends a record that the source topic accepts and that is too large for
// the DLQ topic.
func TestLargeDeadLetterIsCut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.createTopic(t, w.dlq, 1, map[string]*string{"max.message.bytes": new("20000")})
	large := make([]byte, 60_000)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(large)
	small := []testbank.Record{
		{Key: []byte("a"), Value: []byte("poison before")},
		{Key: []byte("b"), Value: large, Headers: []testbank.Header{{Key: "kept", Value: []byte("x")}, {Key: "null"}}},
		{Key: []byte("c"), Value: []byte("poison behind")},
	}
	w.produce(small)
	o := w.oracle()
	p := w.start()
	await(t, "every record consumed", w.arrived)
	p.terminate()
	letters := w.read(w.dlq)
	if len(letters) != len(small) {
		t.Fatalf("%d dead letters, want %d", len(letters), len(small))
	}
	for i := range letters {
		l, f := &o.DeadLetters[i], compare.Split(letters[i])
		if f.Added["errors.offset"] != fmt.Sprint(i) {
			t.Fatalf("dead letter %d is of offset %s", i, f.Added["errors.offset"])
		}
		if i == 1 {
			digest := sha256.Sum256(large)
			if f.Added["errors.value_sha256"] != hex.EncodeToString(digest[:]) || f.Added["errors.value_bytes"] != fmt.Sprint(len(large)) {
				t.Errorf("the cut letter says %v", f.Added)
			}
			delete(f.Added, "errors.value_sha256")
			delete(f.Added, "errors.value_bytes")
			l.Record.Value = nil
		}
		if wrong := w.reader().DeadLetter(l, &f, false); wrong != "" {
			t.Errorf("dead letter %d: %s", i, wrong)
		}
	}
}

// TestDeadLettersRefused makes the brokers refuse dead letters. The partition with the broken
// record must stop at this record or before it. The other partitions must continue.
func TestDeadLettersRefused(t *testing.T) {
	t.Parallel()
	fake := devtest.Fake(t, devstack.FakeOptions{})
	w := newWorldOn(t, fake.Addrs(), devtest.Database(t), 3)
	w.createTopic(t, w.dlq, 3, nil)
	fault := fake.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: w.dlq, Err: kerr.NotEnoughReplicas, Count: -1})
	w.stopsAtDeadLetter(func() { fault.Remove() })
}

// stopsAtDeadLetter consumes a stream with a broken record in partition 0 while the DLQ topic
// cannot be written. It expects partition 0 to stop at this record or before it. Then it calls the
// function mend, after which the topic can be written, and expects partition 0 to continue.
func (w *world) stopsAtDeadLetter(mend func()) {
	w.t.Helper()
	records := testbank.Generate(testbank.Options{Seed: seed(w.t), Records: 3000, Partitions: w.partitions, Accounts: 100, Clean: true})
	poison := testbank.Record{Partition: 0, Value: []byte("poison " + testbank.Marker)}
	w.produce(slices.Insert(records, len(records)/2, poison))
	all, ends := w.read(w.topic), w.ends(w.topic)
	at := all[slices.IndexFunc(all, func(r testbank.Record) bool { return bytes.Equal(r.Value, poison.Value) })].Offset

	p := w.start()
	await(w.t, "the other partitions at their ends", func() string {
		if positions := w.positions(); positions[1] != ends[1] || positions[2] != ends[2] {
			return fmt.Sprintf("positions %v, ends %v", positions, ends)
		}
		return ""
	})
	await(w.t, "projector_retrying", w.retrying(p))
	await(w.t, "unready", p.answers("/readyz", 503, "kafka"))
	stopped := w.positions()[0]
	if stopped > at {
		w.t.Errorf("partition 0 is at %d, beyond the dead letter at %d", stopped, at)
	}
	before := testbank.New(testbank.IgnoredType)
	before.Decide(slices.DeleteFunc(slices.Clone(all), func(r testbank.Record) bool { return r.Partition == 0 && r.Offset >= stopped }))
	if wrong := w.differences(before); wrong != "" {
		w.t.Errorf("something is written beyond the dead letter: %s", wrong)
	}
	mend()
	w.exact(w.oracle(), exactlyOnce)
	await(w.t, "ready", p.answers("/readyz", 200, ""))
	p.terminate()
	w.atRest()
}
