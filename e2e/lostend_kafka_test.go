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

// realDisk is a real broker. The test can replace its logs while the broker is stopped.
type realDisk struct {
	t     *testing.T
	kafka *devstack.Kafka
	older string
}

// copyLogs stops the broker, saves the log of the first partition of each topic, and starts the
// broker again. If the parameter back is true, it also restores the saved logs.
func (d *realDisk) copyLogs(back bool, topics ...string) {
	d.t.Helper()
	if err := d.kafka.Stop(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
	for _, topic := range topics {
		to, from := filepath.Join(d.older, topic), must(d.kafka.LogDir(1, topic, 0))(d.t)
		if back {
			to, from = from, to
		}
		if err := devstack.ReplaceDir(to, from); err != nil {
			d.t.Fatal(err)
		}
	}
	if err := d.kafka.StartNode(d.t.Context(), 1); err != nil {
		d.t.Fatal(err)
	}
}

// TestRealLogLostItsEnd does the same as TestLogLostItsEnd on a real broker. The broker is stopped,
// gets an older copy of a partition, and then receives new records. This is tested with and without
// a running instance.
func TestRealLogLostItsEnd(t *testing.T) {
	t.Parallel()
	kafka := devtest.Kafka(t, devstack.KafkaOptions{})
	d := &realDisk{t: t, kafka: kafka, older: t.TempDir()}
	running, idle := newWorldOn(t, kafka.Addrs(), devtest.Database(t), 2), newWorldOn(t, kafka.Addrs(), devtest.Database(t), 2)
	worlds := []*world{running, idle}
	for _, w := range worlds {
		w.produce(euros(0, "a", 2))
	}
	d.copyLogs(false, running.topic, idle.topic)
	programs := map[*world]*program{}
	for _, w := range worlds {
		w.produce(euros(0, "lost", 4))
		w.produce(euros(1, "c", 3))
		programs[w] = w.start()
	}
	for _, w := range worlds {
		await(t, "all consumed", w.arrived)
		await(t, "and committed to Kafka, or all of it is consumed again", func() string {
			if committed, ends := w.committed(), w.ends(w.topic); !maps.Equal(committed, ends) {
				return fmt.Sprintf("committed %v of %v", committed, ends)
			}
			return ""
		})
	}
	programs[idle].terminate()
	d.copyLogs(true, running.topic, idle.topic)
	for _, w := range worlds {
		w.produce(euros(0, "b", 6))
		if end := w.ends(w.topic)[0]; end != 8 {
			t.Fatalf("the log ends at %d, want it written on from 2 to 8", end)
		}
	}
	running.stoppedAt(programs[running], 6, 0)
	programs[running].terminate()
	for _, w := range worlds {
		w.recoveredByOperator(w.start())
	}
}
