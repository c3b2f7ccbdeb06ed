//go:build kafka

package e2e_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"testing"

	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
)

// realDisk is a real broker with another log on its disk after a restart.
type realDisk struct {
	t     *testing.T
	kafka *devstack.Kafka
	older string
}

// copyLog stops the broker, copies the log of a partition, and starts the broker again.
func (d *realDisk) copyLog(topic string, back bool) {
	d.t.Helper()
	to, from := d.older, must(d.kafka.LogDir(1, topic, 0))(d.t)
	if back {
		to, from = from, to
	}
	if err := d.kafka.Stop(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
	if err := devstack.ReplaceDir(to, from); err != nil {
		d.t.Fatal(err)
	}
	if err := d.kafka.StartNode(d.t.Context(), 1); err != nil {
		d.t.Fatal(err)
	}
}

// TestRealLogLostItsEnd is TestLogLostItsEnd on a real broker, which is stopped, given an
// older copy of a partition, and written on.
func TestRealLogLostItsEnd(t *testing.T) {
	t.Parallel()
	cases := map[string]bool{"under a running instance": true, "while nothing ran": false}
	for name, running := range cases {
		t.Run(name, func(t *testing.T) {
			kafka := devtest.Kafka(t, devstack.KafkaOptions{})
			d := &realDisk{t: t, kafka: kafka, older: filepath.Join(t.TempDir(), "older")}
			w := newWorldOn(t, kafka.Addrs(), devtest.Database(t), 2)
			w.produce(euros(0, "a", 2))
			d.copyLog(w.topic, false)
			w.produce(euros(0, "lost", 4))
			w.produce(euros(1, "c", 3))
			p := w.start()
			await(t, "all consumed", w.arrived)
			await(t, "and committed to Kafka, or all of it is consumed again", func() string {
				if committed, ends := w.committed(), w.ends(w.topic); !maps.Equal(committed, ends) {
					return fmt.Sprintf("committed %v of %v", committed, ends)
				}
				return ""
			})
			if !running {
				p.terminate()
			}
			d.copyLog(w.topic, true)
			w.produce(euros(0, "b", 6))
			if end := w.ends(w.topic)[0]; end != 8 {
				t.Fatalf("the log ends at %d, want it written on from 2 to 8", end)
			}
			if running {
				w.standsAt(p, 6, 0)
				p.terminate()
			}
			w.mendedByAPerson(w.start())
		})
	}
}
