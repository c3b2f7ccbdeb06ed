package e2e_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
	"projector/internal/testbank"
)

// line has the fields of a log line that the tests compare.
type line struct {
	Level, Msg, Operation, After, Reason string
	Attempts                             int
	From, To                             int64
	Partition                            string `json:"messaging.destination.partition.id"`
}

// linesWith returns the log lines with a message.
func (p *program) linesWith(message string) (found []line) {
	p.t.Helper()
	for _, text := range p.lines() {
		var l line
		if json.Unmarshal([]byte(text), &l) == nil && l.Msg == message {
			found = append(found, l)
		}
	}
	return found
}

// TestRecoveredLogLineIsCorrect checks the log lines that are written after an outage. Each line
// must have a plausible duration and number of attempts.
func TestRecoveredLogLineIsCorrect(t *testing.T) {
	t.Parallel()
	const outage = 8 * time.Second
	cluster, url := ownPostgres(t)
	w := newWorldOn(t, devtest.Broker(t).Addrs(), url, 2)
	p := w.start()
	w.produce(w.shortStream())
	await(t, "every record consumed", w.arrived)
	if err := cluster.Stop(t.Context(), devstack.Immediate); err != nil {
		t.Fatal(err)
	}
	down := time.Now()
	w.produce(w.shortStream())
	operations := []string{"check", "read accounts", "count parked events"}
	for _, operation := range operations {
		await(t, "failing: "+operation, p.logged("failing, will retry", operation))
	}
	failing, began := p.linesWith("failing, will retry"), time.Now()
	pause(t.Context(), outage-time.Since(down))
	lasted := time.Since(began)
	if err := cluster.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, "every record consumed", w.arrived)
	await(t, "ready", p.answers("/readyz", 200, ""))
	for _, operation := range operations {
		await(t, "recovered: "+operation, p.logged(`"msg":"recovered"`, operation))
	}
	for _, l := range p.linesWith("recovered") {
		least := time.Duration(0)
		if slices.ContainsFunc(failing, func(f line) bool { return f.Operation == l.Operation }) {
			least = lasted / 2 // another partition may begin to fail a little later
		}
		if after, err := time.ParseDuration(l.After); err != nil || after < least || l.Attempts < 2 {
			t.Errorf("%s: recovered at attempt %d after %s, of an outage of %s", l.Operation, l.Attempts, l.After, lasted)
		}
	}
	p.terminate()
}

// The method lags returns the lag of a partition from the status page, the metric and the command.
// If a lag is unknown, the result is "-".
func (w *world) lags(p *program, partition int32) (page, metric, command string) {
	w.t.Helper()
	page, metric, command = "-", "-", "-"
	var status struct {
		Partitions []struct {
			Partition int32  `json:"partition"`
			Lag       *int64 `json:"lag_records"`
		} `json:"partitions"`
	}
	if _, body := p.get("/status.json"); json.Unmarshal([]byte(body), &status) == nil {
		for _, s := range status.Partitions {
			if s.Partition == partition && s.Lag != nil {
				page = fmt.Sprint(*s.Lag)
			}
		}
	}
	if lag, known := p.metrics()[w.lagSample(partition)]; known {
		metric = fmt.Sprint(int64(lag))
	}
	env := []string{"DATABASE_URL=" + w.url, "KAFKA_BROKERS=" + w.addrs[0]}
	_, stdout, _ := once(w.t, env, "lag", "--topic="+w.topic, "--group="+w.group, "--output=json")
	for text := range strings.Lines(stdout) {
		var l struct {
			Partition int32 `json:"partition"`
			Lag       int64 `json:"lag_records"`
		}
		if json.Unmarshal([]byte(text), &l) == nil && l.Partition == partition {
			command = fmt.Sprint(l.Lag)
		}
	}
	return page, metric, command
}

func (w *world) lagSample(partition int32) string {
	return fmt.Sprintf(`projector_lag_records{partition="%d",projection="account_balance",topic=%q}`, partition, w.topic)
}

// TestLagAgreesOfAStoppedPartition expects the status page, the metric and the command to report
// the same lag for a stopped partition. It tests two causes of a stop, before and after a restart.
func TestLagAgreesOfAStoppedPartition(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*testing.T, *world){
		"position expired": func(t *testing.T, w *world) {
			t.Helper()
			offsets := kadm.Offsets{}
			offsets.AddOffset(w.topic, 0, w.positions()[0]+5, -1)
			w.produce(testbank.Generate(testbank.Options{Seed: seed(t), Records: 300, Partitions: 1, Accounts: 30}))
			if _, err := w.admin.DeleteRecords(t.Context(), offsets); err != nil {
				t.Fatal(err)
			}
		},
		"topic recreated": func(t *testing.T, w *world) {
			t.Helper()
			if _, err := w.admin.DeleteTopic(t.Context(), w.topic); err != nil {
				t.Fatal(err)
			}
			await(t, "the topic is gone", w.topicHas(0))
			w.createTopic(t, w.topic, 1, nil)
			await(t, "the topic is there", w.topicHas(1))
			w.produce(testbank.Generate(testbank.Options{Seed: seed(t), Records: 300, Partitions: 1, Accounts: 30}))
		},
	}
	for name, happen := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			w.produce(testbank.Generate(testbank.Options{Seed: seed(t), Records: 50, Partitions: 1, Accounts: 10}))
			p := w.start()
			await(t, "every record consumed", w.arrived)
			if name == "position expired" { // no instance may run now, because it would consume the records
				p.terminate()
				happen(t, w)
				p = w.start()
			} else {
				happen(t, w)
			}
			for _, moment := range []string{"when it happens", "behind a restart"} {
				await(t, "stopped", p.logged("partition stopped"))
				await(t, "one lag, "+moment, func() string {
					page, metric, command := w.lags(p, 0)
					if page != metric || metric != command || command == "-" || command == "0" {
						return fmt.Sprintf("page %s, metric %s, command %s", page, metric, command)
					}
					return ""
				})
				p.terminate()
				if moment == "when it happens" {
					p = w.start()
				}
			}
		})
	}
}

// TestLagIsThereAsSoonAsAPartitionIsClaimed expects a new instance to export the lag gauge at once,
// because an autoscaler reads it.
func TestLagIsThereAsSoonAsAPartitionIsClaimed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.produce(w.shortStream())
	p := w.start()
	await(t, "claimed", func() string {
		if w.positions()[0] == 0 {
			return "no position has moved"
		}
		return ""
	})
	if _, known := p.metrics()[w.lagSample(0)]; !known {
		t.Error("the partition is claimed, its records are consumed, and there is no projector_lag_records")
	}
	p.terminate()
}

// TestARewindIsLogged moves a position back in three ways. Each time, the log must state the old
// offset, the new offset and the cause.
func TestARewindIsLogged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.produce(w.shortStream())
	p := w.start()
	await(t, "every record consumed", w.arrived)
	p.terminate()
	end := w.positions()[0]
	rewound := func(p *program, why string, from, to int64) {
		t.Helper()
		await(t, "a line of the rewind", func() string {
			for _, l := range p.linesWith("the position was taken back") {
				if l.Partition == "0" && l.From == from && l.To == to && strings.Contains(l.Reason, why) {
					return ""
				}
			}
			return fmt.Sprintf("%+v", p.linesWith("the position was taken back"))
		})
		await(t, "every record consumed again", w.arrived)
	}

	// An operator resets the offsets of the group in Kafka.
	w.commit(0, end-10)
	p = w.start()
	rewound(p, "Kafka", end, end-10)

	// The test moves the stored position back, as a restored backup would do. It does this while
	// the program runs, and again while it does not run.
	w.exec("UPDATE projector_position SET next_offset = $1, fence = fence + 7 WHERE consumer_group = $2", end-20, w.group)
	rewound(p, "restored", end, end-20)
	if n := len(p.linesWith("the position was taken back")); n != 2 {
		t.Errorf("%d lines of two rewinds", n)
	}
	p.terminate()
	w.exec("UPDATE projector_position SET next_offset = $1 WHERE consumer_group = $2", end-30, w.group)
	p = w.start()
	rewound(p, "restored", end, end-30)
	p.terminate()
	w.atRest()
	again := w.start()
	await(t, "ready", again.answers("/readyz", 200, ""))
	again.terminate()
	if l := again.linesWith("the position was taken back"); len(l) > 0 {
		t.Errorf("nothing was taken back: %+v", l)
	}
}
