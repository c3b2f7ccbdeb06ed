package e2e_test

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
	"projector/internal/testbank"
)

// disk is an in-process broker that can be stopped. It can be started again on the same port with
// another log.
type disk struct {
	t       *testing.T
	options devstack.FakeOptions
	fake    *devstack.Fake // nil while the broker is stopped
	addrs   []string
	older   string // folder with the saved log of partition 0
}

func newDisk(t *testing.T) *disk {
	t.Helper()
	d := &disk{t: t, options: devstack.FakeOptions{Dir: t.TempDir()}, older: filepath.Join(t.TempDir(), "older")}
	d.start()
	d.addrs = d.fake.Addrs()
	t.Cleanup(d.stop)
	return d
}

func (d *disk) start() {
	d.t.Helper()
	options := d.options
	if len(d.addrs) > 0 {
		_, port, err := net.SplitHostPort(d.addrs[0])
		if err != nil {
			d.t.Fatal(err)
		}
		options.More = append(options.More, kfake.Ports(must(strconv.Atoi(port))(d.t)))
	}
	d.fake = must(devstack.StartFake(d.t.Context(), options))(d.t)
}

func (d *disk) stop() {
	if d.fake != nil {
		_ = d.fake.Close(d.t.Context())
		d.fake = nil
	}
}

// atAnotherAddress starts the broker for a moment at another address and calls the function change.
// The clients of the test do not know this address.
func (d *disk) atAnotherAddress(change func(*devstack.Fake)) {
	d.t.Helper()
	fake := must(devstack.StartFake(d.t.Context(), d.options))(d.t)
	defer func() { _ = fake.Close(d.t.Context()) }()
	change(fake)
}

// saveLog saves the current log of partition 0 of a topic.
func (d *disk) saveLog(topic string) {
	d.t.Helper()
	d.stop()
	if err := devstack.ReplaceDir(d.older, d.options.LogDir(topic, 0)); err != nil {
		d.t.Fatal(err)
	}
	d.start()
}

// restoreLog stops the broker and replaces the log of partition 0 by the saved log.
func (d *disk) restoreLog(topic string) {
	d.t.Helper()
	d.stop()
	if err := devstack.ReplaceDir(d.options.LogDir(topic, 0), d.older); err != nil {
		d.t.Fatal(err)
	}
}

// euros returns n credits of 1.00 EUR to an account. The first version is 1.
func euros(partition int32, account string, n int) []testbank.Record {
	records := make([]testbank.Record, n)
	for i := range records {
		records[i] = testbank.Record{Partition: partition, Key: []byte(account), Value: fmt.Appendf(nil,
			`{"eventId":"%[1]s-%[2]d","eventType":"FundsCredited","accountId":"%[1]s","version":%[2]d,`+
				`"occurredAt":"2026-01-01T00:00:00Z","data":{"amount":"1.00","currency":"EUR"}}`, account, i+1)}
	}
	return records
}

// newLostEnd returns a test environment with two records in partition 0 and a saved copy of this
// partition. Four more records were produced after the copy, and the projector has consumed all
// six.
func newLostEnd(t *testing.T) (*world, *disk, *program) {
	t.Helper()
	d := newDisk(t)
	w := newWorldOn(t, d.addrs, devtest.Database(t), 2)
	w.produce(euros(0, "a", 2))
	d.saveLog(w.topic)
	w.produce(euros(0, "lost", 4))
	w.produce(euros(1, "c", 3))
	p := w.start()
	await(t, "all consumed", w.arrived)
	return w, d, p
}

// appendBeyondPosition appends records to partition 0 under a new leader epoch. The log then ends
// beyond the projector's position.
func (w *world) appendBeyondPosition(d *disk) {
	w.t.Helper()
	d.atAnotherAddress(func(fake *devstack.Fake) {
		if err := fake.Cluster.MoveTopicPartition(w.topic, 0, 0); err != nil {
			w.t.Fatal(err)
		}
		there := *w
		there.addrs = fake.Addrs()
		there.produce(euros(0, "b", 6))
	})
}

// stoppedAt expects partition 0 to stop at an offset with the reason "log lost its end", and
// partition 1 to continue.
func (w *world) stoppedAt(p *program, position int64, round int) {
	w.t.Helper()
	await(w.t, "a loud line", p.logged(`"level":"ERROR"`, "partition stopped", "lost its end"))
	await(w.t, "unready with the reason", p.answers("/readyz", 503, "log lost its end"))
	w.produce(euros(1, fmt.Sprint("c", round), 2))
	await(w.t, "the other partition goes on", func() string {
		if at, ends := w.positions(), w.ends(w.topic); at[1] != ends[1] {
			return fmt.Sprintf("positions %v, ends %v", at, ends)
		}
		return ""
	})
	if at := w.positions(); at[0] != position {
		w.t.Errorf("partition 0 went on from %d to %d as if nothing were lost", position, at[0])
	}
}

// TestLogLostItsEnd replaces a consumed partition of six records by its copy with two records. It
// then appends records until there are eight. The new records at offsets two to five must not be
// skipped.
func TestLogLostItsEnd(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*world, *disk, *program){
		// Kafka refuses the fetch at offset six, because the log has only two records.
		"under a running instance": func(w *world, d *disk, p *program) {
			d.restoreLog(w.topic)
			d.start()
			w.stoppedAt(p, 6, 0)
			w.produce(euros(0, "b", 6))
			p.terminate()
		},
		// The log ends beyond the position again, so the client notices the loss only by the leader
		// epoch.
		"under a running instance, written on": func(w *world, d *disk, p *program) {
			d.restoreLog(w.topic)
			w.appendBeyondPosition(d)
			d.start()
			w.stoppedAt(p, 6, 0)
			p.terminate()
		},
		// No client runs, so only the leader epoch that is stored with the position shows the loss.
		"while nothing ran, written on": func(w *world, d *disk, p *program) {
			p.terminate()
			d.restoreLog(w.topic)
			w.appendBeyondPosition(d)
			d.start()
		},
		// Nothing is fetched while the partition is paused. The new records have the leader epoch of the
		// lost ones, so the loss can only be seen before they are appended.
		"while it was paused, written on later": func(w *world, d *disk, p *program) {
			w.statesAfter("pause", "--partition=0", "--reason=restoring the broker", "--yes")
			await(w.t, "paused", p.gauge("projector_paused", w.topic, 0, 1))
			d.restoreLog(w.topic)
			d.start()
			await(w.t, "unready with the reason", p.answers("/readyz", 503, "log lost its end"))
			w.produce(euros(0, "b", 6))
			w.statesAfter("resume", "--partition=0", "--reason=restored", "--yes")
			w.stoppedAt(p, 6, 0)
			p.terminate()
		},
		// Nothing was read since the position was set, so its leader epoch is the one that was stored then.
		"after position set, while nothing ran, written on": func(w *world, d *disk, p *program) {
			p.terminate()
			w.set(0, "", "--partition=0", "--offset=6", "--reason=test", "--yes")
			d.restoreLog(w.topic)
			w.appendBeyondPosition(d)
			d.start()
		},
		"while nothing ran": func(w *world, d *disk, p *program) {
			p.terminate()
			d.restoreLog(w.topic)
			d.start()
			p = w.start()
			w.stoppedAt(p, 6, 0)
			p.terminate()
			w.produce(euros(0, "b", 6))
		},
		// The committed offset is lower than the stored position, and the shortened log still has
		// the record at the committed offset.
		"while nothing ran, before the last commit": func(w *world, d *disk, p *program) {
			p.terminate()
			w.commit(0, 1)
			d.restoreLog(w.topic)
			w.appendBeyondPosition(d)
			d.start()
		},
	}
	for name, lose := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, d, p := newLostEnd(t)
			lose(w, d, p)
			w.recoveredByOperator(w.start())
		})
	}
}

// recoveredByOperator expects partition 0 to stay stopped until an operator sets its position to
// two, where the log ended. After that, all appended records must be consumed.
func (w *world) recoveredByOperator(p *program) {
	w.t.Helper()
	w.stoppedAt(p, 6, 1)
	w.set(1, "--skip-unread", "--partition=0", "--offset=8", "--reason=test", "--yes")
	w.set(0, "", "--partition=0", "--offset=2", "--reason=test", "--yes")
	await(w.t, "all consumed", w.arrived)
	await(w.t, "ready", p.answers("/readyz", 200, ""))
	if b := w.rows()["b"]; b.Version != 6 || b.Stale {
		w.t.Errorf("what was appended: %+v, want version 6", b)
	}
	p.terminate()
	w.atRest()
}
