package e2e_test

import (
	"testing"
	"time"

	"projector/internal/testbank"
)

// TestReplicasComeAndGo starts and stops up to three instances while records arrive.
func TestReplicasComeAndGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 6)
	w.audit()
	w.slowWrites(5 * time.Millisecond)
	total := scaled(20_000)
	finish := w.feed(testbank.Generate(testbank.Options{Seed: seed(t), Records: total, Partitions: w.partitions, Accounts: 400}), total/400, 25*time.Millisecond)
	a := w.start()
	await(t, "the first alone", w.passed(int64(total/10)))
	b := w.start()
	await(t, "the second has partitions", b.logged("partitions assigned"))
	await(t, "two", w.passed(int64(2*total/10)))
	c := w.start()
	await(t, "the third has partitions", c.logged("partitions assigned"))
	await(t, "three", w.passed(int64(3*total/10)))
	a.terminate()
	await(t, "two are left", w.passed(int64(5*total/10)))
	b.kill()
	w.evict() // also evicts c, which loses its partitions and joins again
	d := w.start()
	await(t, "another has partitions", d.logged("partitions assigned"))
	finish()
	o := w.oracle()
	w.exact(o, repeated)
	c.terminate()
	d.terminate()
	w.atRest()
	if n := w.audited(); n > 0 {
		t.Errorf("%d writes did not raise the version", n)
	}
	if wrong := w.differences(o); wrong != "" {
		t.Error(wrong)
	}
}
