package e2e_test

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"projector/internal/testbank"
)

func (w *world) grow(partitions int32) {
	w.t.Helper()
	answers, err := w.admin.UpdatePartitions(w.t.Context(), int(partitions), w.topic)
	if err == nil {
		err = answers.Error()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.partitions = partitions
	await(w.t, "every broker knows the new partitions", func() string { return w.grown(partitions) })
}

// The method grown returns "" if every broker reports the given number of partitions. The
// controller answers before the brokers know the new partitions. A client that asks too early would
// distribute its keys over the old number of partitions.
func (w *world) grown(partitions int32) string {
	for _, broker := range w.kafka.DiscoveredBrokers() {
		request := kmsg.NewPtrMetadataRequest()
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = kmsg.StringPtr(w.topic)
		request.Topics = append(request.Topics, topic)
		answer, err := broker.Request(w.t.Context(), request)
		if err != nil {
			return err.Error()
		}
		if known := len(answer.(*kmsg.MetadataResponse).Topics[0].Partitions); known != int(partitions) {
			return fmt.Sprintf("a broker knows %d partitions of %d", known, partitions)
		}
	}
	return ""
}

// The method placed produces a credit for each account and returns the partition that each key was
// sent to.
func (w *world) placed(client *kgo.Client, accounts []string, version int) map[string]int32 {
	w.t.Helper()
	where := map[string]int32{}
	for _, account := range accounts {
		r := credit(account, version)
		r.Topic = w.topic
		if err := client.ProduceSync(w.t.Context(), r).FirstErr(); err != nil {
			w.t.Fatal(err)
		}
		where[account] = r.Partition
	}
	return where
}

// TestPartitionsAreAdded follows docs/sizing.md: stop the producers, consume all records, add
// partitions, restart producers and consumers. Accounts then move to other partitions, and no event
// may be dead-lettered.
func TestPartitionsAreAdded(t *testing.T) {
	t.Parallel()
	const before, after = 3, 6 // versions
	w := newWorld(t, 2)
	accounts := make([]string, 40)
	for i := range accounts {
		accounts[i] = fmt.Sprintf("grown-%02d", i)
	}
	p := w.start()
	old, where := w.client(), map[string]int32{}
	for v := 1; v <= before; v++ {
		where = w.placed(old, accounts, v)
	}
	await(t, "drained", w.arrived)
	w.grow(5)
	p.terminate()
	p = w.start()
	moved, fresh := 0, w.client()
	for v := before + 1; v <= after; v++ {
		moved = 0
		for account, partition := range w.placed(fresh, accounts, v) {
			if partition != where[account] {
				moved++
			}
		}
	}
	if moved == 0 {
		t.Fatal("no account has moved to another partition")
	}
	await(t, "every record consumed", w.arrived)
	for _, account := range accounts {
		await(t, "the balance", w.reads(account, fmt.Sprintf("%d 0.0%d false", after, after)))
	}
	if letters := sum(w.ends(w.dlq)); letters != 0 {
		t.Errorf("%d dead letters, want none: %d accounts have moved", letters, moved)
	}
	if r := w.rebuild(); r.Matched != int64(len(accounts)) || r.Different+r.LeftAlone != 0 {
		t.Errorf("rebuilt from both partitions of an account: %+v", r)
	}
	p.terminate()
	w.atRest()
}

func (w *world) at(partition int32, records ...*kgo.Record) {
	w.t.Helper()
	var list []testbank.Record
	for _, r := range records {
		list = append(list, testbank.Record{Partition: partition, Key: r.Key, Value: r.Value})
	}
	w.produce(list)
}

// TestAnEventHealsWhatAnotherPartitionHasParked parks events of partition 1 and sends the missing
// version on partition 0. The worker of partition 0 has an older cached state of the account, but
// must apply the version and the parked events. No later event arrives that could start another
// attempt.
func TestAnEventHealsWhatAnotherPartitionHasParked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	p := w.start()
	w.at(0, credit("moved", 1))
	await(t, "the first", w.reads("moved", "1 0.01 false"))
	w.at(1, credits("moved", 3, 5)...)
	await(t, "the hole", w.reads("moved", "1 0.01 true 2"))
	await(t, "all parked", func() string {
		if got := w.statuses("moved"); got != "map[waiting:3]" {
			return got
		}
		return ""
	})
	// These 3,000 records delay a rebuild in partition 0, so the rebuild reads all of partition 1
	// before the event of version 2.
	w.at(0, credits("other", 1, 3000)...)
	w.at(0, credit("moved", 2))
	await(t, "the healing", w.reads("moved", "5 0.05 false"))
	if wrong := p.logged("although their turn has come")(); wrong != "" {
		t.Error(wrong)
	}
	await(t, "every record consumed", w.arrived)
	if r := w.rebuild(); r.Matched != 2 || r.Different+r.LeftAlone != 0 {
		t.Errorf("rebuilt: %+v", r)
	}
	p.terminate()
	w.atRest()
}

// TestEventsScatteredOverPartitions uses a producer without keys, so the events of an account
// arrive on all partitions in any order. All of them are applied without a replay.
func TestEventsScatteredOverPartitions(t *testing.T) {
	t.Parallel()
	const versions = 40
	w := newWorld(t, 4)
	rnd := random(seed(t))
	var records []testbank.Record
	for v := 1; v <= versions; v++ {
		for a := range 50 {
			r := credit(fmt.Sprintf("scattered-%02d", a), v)
			records = append(records, testbank.Record{Partition: int32(rnd.IntN(4)), Value: r.Value})
		}
	}
	w.produce(records[:len(records)/2])
	a, b := w.start(), w.start()
	await(t, "half way", w.passed(int64(len(records)/4)))
	w.produce(records[len(records)/2:])
	await(t, "every record consumed", w.arrived)
	await(t, "all applied", func() string {
		var right int
		err := w.db.QueryRow(t.Context(), `SELECT count(*) FROM account_balance_current
			WHERE version = $1 AND balance = $1 / 100.0 AND NOT stale`, versions).Scan(&right)
		if err != nil || right != 50 {
			return fmt.Sprintf("%d accounts are right, error %v", right, err)
		}
		return ""
	})
	if r := w.rebuild(); r.Matched != 50 || r.Different+r.LeftAlone != 0 {
		t.Errorf("rebuilt: %+v", r)
	}
	a.terminate()
	b.terminate()
	w.atRest()
}
