//go:build kafka

package e2e_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
	"projector/internal/testbank"
)

// TestDeadLettersRefusedByCompaction makes the DLQ topic a compacted topic. A real broker then
// refuses a dead letter without a key.
func TestDeadLettersRefusedByCompaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.createTopic(t, w.dlq, 3, map[string]*string{"cleanup.policy": new("compact")})
	w.stopsAtDeadLetter(func() {
		_, err := w.admin.AlterTopicConfigs(t.Context(),
			[]kadm.AlterConfig{{Op: kadm.SetConfig, Name: "cleanup.policy", Value: new("delete")}}, w.dlq)
		if err != nil {
			t.Fatalf("alter %s: %v", w.dlq, err)
		}
	})
}

// TestBrokerKilledInMidStream kills the only broker and restarts it.
func TestBrokerKilledInMidStream(t *testing.T) {
	t.Parallel()
	kafka := devtest.Kafka(t, devstack.KafkaOptions{})
	w := newWorldOn(t, kafka.Addrs(), devtest.Database(t), 4)
	w.slowWrites(10 * time.Millisecond)
	total := scaled(20_000)
	finish := w.feed(testbank.Generate(testbank.Options{Seed: seed(t), Records: total, Partitions: w.partitions, Accounts: 400}), total/200, 25*time.Millisecond)
	p := w.start()
	await(t, "the middle of the stream", w.passed(int64(total/3)))
	before, down := len(p.lines()), time.Now()
	if err := kafka.Kill(1); err != nil {
		t.Fatal(err)
	}
	awaitWithin(t, soon, "unready without a broker", p.answers("/readyz", 503, "Kafka"))
	if status, body := p.get("/livez"); status != 200 {
		t.Errorf("/livez: %d %s", status, body)
	}
	if err := kafka.StartNode(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	finish()
	w.exact(w.oracle(), repeated)
	await(t, "ready again", p.answers("/readyz", 200, ""))
	w.fewLines(p, before, 60, down)
	p.terminate()
	w.atRest()
}

// TestSurvivorTakesOver kills one of two instances. The second instance receives the partitions
// when the session times out, after half a minute.
func TestSurvivorTakesOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	w.slowWrites(5 * time.Millisecond)
	total := scaled(20_000)
	finish := w.feed(testbank.Generate(testbank.Options{Seed: seed(t), Records: total, Partitions: w.partitions, Accounts: 400}), total/200, 25*time.Millisecond)
	a := w.start()
	await(t, "one", w.passed(int64(total/10)))
	b := w.start()
	await(t, "the second has partitions", b.logged("partitions assigned"))
	await(t, "two", w.passed(int64(total/4)))
	a.kill()
	finish()
	w.exact(w.oracle(), repeated)
	b.terminate()
	w.atRest()
}
