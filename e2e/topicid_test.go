package e2e_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kversion"

	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
)

// TestTopicGainsAnID simulates an upgrade of brokers that had no topic ids. The projector must
// treat the topic with the new id as the same topic.
func TestTopicGainsAnID(t *testing.T) {
	t.Parallel()
	d := &disk{t: t, options: devstack.FakeOptions{Dir: t.TempDir()}}
	d.options.More = []kfake.Opt{kfake.MaxVersions(kversion.V2_7_0())}
	d.start()
	d.addrs = d.fake.Addrs()
	t.Cleanup(d.stop)
	w := newWorldOn(t, d.addrs, devtest.Database(t), 1)
	w.produce(euros(0, "a", 3))
	p := w.start()
	await(t, "all consumed", w.arrived)
	p.terminate()
	const none = "AAAAAAAAAAAAAAAAAAAAAA=="
	if id := w.topicID(); id != none {
		t.Fatalf("the topic's id is %s without the upgrade", id)
	}

	d.stop()
	d.options.More = nil
	d.start()
	w.produce(euros(0, "b", 3))
	if status, stdout, stderr := w.command("lag"); status != 0 {
		t.Errorf("lag: %d: %s%s", status, stdout, stderr)
	}
	p = w.start()
	await(t, "all consumed", w.arrived)
	await(t, "ready", p.answers("/readyz", 200, ""))
	if id := w.topicID(); id == none {
		t.Error("the topic's id was not taken over")
	}
	if status, stdout, stderr := w.command("rebuild"); status != 0 {
		t.Errorf("rebuild: %d: %s%s", status, stdout, stderr)
	}
	p.terminate()
	w.atRest()
}

func (w *world) topicID() (id string) {
	w.t.Helper()
	if err := w.db.QueryRow(w.t.Context(), "SELECT topic_id FROM projector_position").Scan(&id); err != nil {
		w.t.Fatal(err)
	}
	return id
}

// command runs a command other than `run` with the topic and the group of this test.
func (w *world) command(name string, args ...string) (status int, stdout, stderr string) {
	w.t.Helper()
	var group []string
	if !strings.Contains(strings.Join(args, " "), "--group=") {
		group = append(group, "--group="+w.group)
	}
	return once(w.t, []string{"DATABASE_URL=" + w.url, "KAFKA_BROKERS=" + w.addrs[0]},
		slices.Concat([]string{name}, args, []string{"--topic=" + w.topic}, group)...)
}
