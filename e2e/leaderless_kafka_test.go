//go:build kafka

package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"syscall"
	"testing"
	"time"

	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
	"projector/internal/testbank"
)

// TestCommandsDuringAnOutageOfOneBroker uses topics without replicas on three brokers. It freezes
// and then kills one broker. The commands must report the partitions of the other two brokers
// within their time limit. This must work while the cluster still names the dead broker as leader.
// It must also work after the cluster has noticed that the broker is dead.
func TestCommandsDuringAnOutageOfOneBroker(t *testing.T) {
	t.Parallel()
	const partitions, letters = 3, 60
	kafka := devtest.Kafka(t, devstack.KafkaOptions{Brokers: 3})
	w := newWorldOn(t, kafka.Addrs(), devtest.Database(t), 0)
	w.name("unreplicated")
	w.partitions = partitions
	for _, topic := range []string{w.topic, w.dlq} {
		if _, err := w.admin.CreateTopic(t.Context(), partitions, 1, nil, topic); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "both topics have leaders", w.led(3, w.topic, w.dlq))
	var records []testbank.Record
	for i := range letters {
		records = append(records, testbank.Record{
			Partition: int32(i % partitions), Key: fmt.Appendf(nil, "key-%d", i), Value: []byte("poison " + testbank.Marker),
		})
	}
	w.produce(records)
	p := w.start()
	await(t, "every record consumed", w.arrived)
	p.terminate()

	leaders := w.leaders(w.topic)
	victim := leaders[1]
	ends, dlqEnds, dlqLeaders := w.ends(w.topic), w.ends(w.dlq), w.leaders(w.dlq)
	ask := func(moment string, want int, args ...string) (lines []map[string]any, said string) {
		t.Helper()
		env := []string{"DATABASE_URL=" + w.url, "KAFKA_BROKERS=" + strings.Join(w.addrs, ",")}
		began := time.Now()
		status, stdout, stderr := once(t, env, append(args, "--topic="+w.topic, "--group="+w.group, "--output=json", "--log-level=error")...)
		if took := time.Since(began); status != want || took > time.Minute {
			t.Errorf("%s, %v: exit status %d after %s, want %d\n%s", moment, args, status, took, want, stderr)
		}
		for text := range strings.Lines(stdout) {
			var line map[string]any
			if err := json.Unmarshal([]byte(text), &line); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, line)
		}
		return lines, stderr
	}
	look := func(moment string, want int) {
		t.Helper()
		lags, said := ask(moment, want, "lag")
		if len(lags) != partitions {
			t.Errorf("%s: the lag of %d partitions\n%s", moment, len(lags), said)
		}
		for i, lag := range lags {
			number := int32(i)
			if want == 1 && leaders[number] == victim {
				named := strings.Contains(said, fmt.Sprintf("partition %d of topic %s:", number, w.topic))
				if lag["end"] != nil || lag["lag_records"] != nil || lag["position"] != float64(ends[number]) || !named {
					t.Errorf("%s: partition %d has no leader: %v\n%s", moment, number, lag, said)
				}
			} else if lag["end"] != float64(ends[number]) || lag["lag_records"] != 0.0 {
				t.Errorf("%s: partition %d has a leader: %v", moment, number, lag)
			}
		}
		listed, said := ask(moment, want, "dlq", "list")
		got, expected := map[int32]int64{}, maps.Clone(dlqEnds)
		for _, letter := range listed {
			got[int32(letter["dlq_partition"].(float64))]++
		}
		if want == 1 {
			maps.DeleteFunc(expected, func(p int32, _ int64) bool { return dlqLeaders[p] == victim })
		}
		if !maps.Equal(got, expected) {
			t.Errorf("%s: dead letters %v, want %v\n%s", moment, got, expected, said)
		}
	}
	look("before", 0)
	if err := syscall.Kill(kafka.PID(int(victim)), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	look("frozen", 1)
	if err := kafka.Kill(int(victim)); err != nil {
		t.Fatal(err)
	}
	look("at once", 1)
	await(t, "the cluster knows", w.led(2, w.topic, w.dlq))
	look("when the cluster knows", 1)
	_, said := ask("when the cluster knows", 1, "lag")
	if !strings.Contains(said, fmt.Sprintf("bring back broker %d", victim)) {
		t.Errorf("nobody says which broker is missed:\n%s", said)
	}
	if err := kafka.StartNode(t.Context(), int(victim)); err != nil {
		t.Fatal(err)
	}
	await(t, "all is well", w.led(3, w.topic, w.dlq))
	look("afterwards", 0)
}

// leaders returns the leader of each partition of a topic.
func (w *world) leaders(topic string) map[int32]int32 {
	w.t.Helper()
	topics, err := w.admin.ListTopics(w.t.Context(), topic)
	if err != nil {
		w.t.Fatal(err)
	}
	leaders := map[int32]int32{}
	for number, p := range topics[topic].Partitions {
		if p.Err == nil && p.Leader >= 0 {
			leaders[number] = p.Leader
		}
	}
	return leaders
}

// The method led returns a check for await. It succeeds when the given number of brokers lead
// partitions of each topic.
func (w *world) led(brokers int, topics ...string) func() string {
	return func() string {
		for _, topic := range topics {
			distinct := map[int32]bool{}
			for _, leader := range w.leaders(topic) {
				distinct[leader] = true
			}
			if len(distinct) != brokers {
				return fmt.Sprintf("%d brokers lead %s", len(distinct), topic)
			}
		}
		return ""
	}
}
