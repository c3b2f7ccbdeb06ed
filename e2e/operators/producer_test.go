package operators_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/e2e/wait"
)

const (
	busyAccounts = 8
	calmAccounts = 6
	mistyped     = 1_700_000
)

// producer sends the events of all accounts, with many kinds of errors. Operators decide only about
// the accounts in the field busy. The accounts in the field calm never exceed the park limit and
// lose no event. Their events may therefore be sent while any command runs, because the order of
// command and event does not change the result.
type producer struct {
	s    *stage
	rnd  *rand.Rand
	side *rand.Rand // random numbers for events during a command, because their count depends on the machine
	busy []*source
	calm []*source
	ids  int
	// plain means that produce sends no transactions.
	plain bool
	late  []*event // events of busy accounts that are sent later
	// published has the events in the outbox.
	published []*event
}

// source is the producer of one account.
type source struct {
	id        string
	partition int32
	next      int64
	calm      bool
	moved     int64 // first version in the present partition, if the account was moved
	sent      []*event
	lost      []*event
}

func newProducer(s *stage) *producer {
	p := &producer{s: s, rnd: rand.New(rand.NewPCG(s.seed, 8)), side: rand.New(rand.NewPCG(s.seed, 9))}
	for i := range busyAccounts {
		p.busy = append(p.busy, p.source(fmt.Sprint("busy-", i), false))
	}
	for i := range calmAccounts {
		p.calm = append(p.calm, p.source(fmt.Sprint("calm-", i), true))
	}
	return p
}

func (p *producer) source(id string, calm bool) *source {
	return &source{id: id, partition: partitionOf(id, len(p.s.log)), next: 1, calm: calm}
}

// partitionOf returns the partition to which a producer, or `dlq replay --to-topic`, sends the next
// events of an account.
func partitionOf(id string, partitions int) int32 {
	byKey := kgo.StickyKeyPartitioner(nil).ForTopic("")
	return int32(byKey.Partition(&kgo.Record{Key: []byte(id)}, partitions))
}

// addPartition adds a partition to the topic, with two new accounts, and restarts the consumers, as
// docs/sizing.md says. The other accounts stay in their partitions, or all of them move. Then the older
// events of an account are in another partition, and late ones still arrive there.
func (s *stage) addPartition() {
	s.t.Helper()
	if len(s.log) == partitions+2 {
		return
	}
	s.note("a partition is added")
	answers, err := s.admin.CreatePartitions(s.t.Context(), 1, s.topic)
	if err := errors.Join(err, answers.Error()); err != nil {
		s.t.Fatal(err)
	}
	p := s.producer
	added := int32(len(s.log))
	s.log, s.start = append(s.log, nil), append(s.start, 0)
	for _, r := range s.readers {
		r.next, r.high = append(r.next, 0), append(r.high, 0)
	}
	busy, calm := p.source(fmt.Sprint("busy-added-", added), false), p.source(fmt.Sprint("calm-added-", added), true)
	busy.partition, calm.partition = added, added
	if s.rnd.IntN(2) == 0 {
		s.note("all accounts move")
		s.moved = true
		for _, a := range slices.Concat(p.busy, p.calm) {
			a.partition, a.moved = partitionOf(a.id, len(s.log)), a.next
		}
	}
	p.busy, p.calm = append(p.busy, busy), append(p.calm, calm)
	nothing := &event{account: busy.id, partition: added, garbage: true, nothing: true}
	wait.Until(s.t, patience, "the partition is there", func() string {
		if err := s.kafka.ProduceSync(s.t.Context(), p.record(nothing)).FirstErr(); err != nil {
			s.kafka.ForceMetadataRefresh()
			return err.Error()
		}
		return ""
	})
	p.append([]*event{nothing})
	p.send(p.goods(busy, 2))
	p.send(p.goods(calm, 2))
	for _, r := range s.readers {
		s.endSecond(r)
		s.restart(r)
	}
	s.count("partition", true)
}

func (p *producer) event(a *source, version int64) *event {
	p.ids++
	e := &event{
		id: fmt.Sprintf("e%d", p.ids), account: a.id, version: version, partition: a.partition, currency: "EUR",
		kind: credit, cents: 1 + p.rnd.Int64N(100_000), points: fmt.Sprint(p.rnd.IntN(100)),
		at: time.Date(2026, 1, 1+p.rnd.IntN(5), p.rnd.IntN(24), 0, p.rnd.IntN(60), 0, time.UTC),
	}
	switch n := p.rnd.IntN(20); {
	case version == 1 || n < 2:
		e.kind, e.cents = opened, 0
	case n < 3:
		e.kind, e.cents = closed, 0
	case n < 8:
		e.kind = debit
	}
	return e
}

func (p *producer) good(a *source) *event {
	a.next++
	return p.event(a, a.next-1)
}

func (p *producer) goods(a *source, n int) (events []*event) {
	for range n {
		events = append(events, p.good(a))
	}
	return events
}

// poison returns an event that some of the projections refuse, and the correct event of the same
// version. The event ids may be the same or different.
func (p *producer) poison(a *source) (wrong, right *event) {
	right = p.good(a)
	if !right.funds() {
		right.kind, right.cents = credit, 77
	}
	e := *right
	wrong = &e
	switch p.rnd.IntN(4) {
	case 0:
		wrong.kind = unknown
	case 1:
		wrong.asNumber = true
	case 2:
		wrong.currency = "USD"
		if wrong.version == 1 {
			wrong.currency, wrong.points = "EUR", many
		}
	default:
		wrong.points = many
	}
	if p.s.pruning || p.rnd.IntN(2) == 0 {
		p.ids++
		right.id = fmt.Sprintf("e%d", p.ids)
	}
	return wrong, right
}

// The method happens returns a random group of next events of an account.
func (p *producer) happens(a *source) []*event {
	n := p.rnd.IntN(100)
	if a.calm || n < 60 {
		return p.usual(a, p.rnd.IntN(100))
	}
	return p.unusual(a, n)
}

// The method usual returns events that need no operator, because every version arrives in the end.
func (p *producer) usual(a *source, n int) []*event {
	switch {
	case n < 50:
		return p.goods(a, 1+p.rnd.IntN(3))
	case n < 65 && len(a.sent) > 0 && !p.s.pruning:
		return []*event{a.sent[p.rnd.IntN(len(a.sent))]}
	case n < 80:
		events := p.goods(a, 2+p.rnd.IntN(p.s.parkLimit))
		p.rnd.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
		return events
	case n < 90:
		wrong, right := p.poison(a)
		events := append([]*event{wrong}, p.goods(a, p.rnd.IntN(p.s.parkLimit))...)
		return append(events, right)
	case n < 95 && a.next > max(1, a.moved): // the order of events in two partitions is not known
		return []*event{p.event(a, a.next-1)} // another event of the last version
	case n < 97:
		e := p.event(a, a.next)
		e.garbage, e.nothing = true, p.rnd.IntN(2) == 0
		return []*event{e}
	default:
		return p.goods(a, 1)
	}
}

// The method unusual returns events that need an operator.
func (p *producer) unusual(a *source, n int) []*event {
	switch {
	case n < 68: // more events than the park limit; the missing event comes now or later
		held := p.good(a)
		events := p.goods(a, p.s.parkLimit+1+p.rnd.IntN(4))
		if p.rnd.IntN(2) == 0 {
			return append(events, held)
		}
		p.late = append(p.late, held)
		return events
	case n < 76: // a lost event; it may be in the outbox and may arrive late
		held := p.good(a)
		a.lost = append(a.lost, held)
		if p.rnd.IntN(3) > 0 {
			p.publish(held)
		}
		if p.rnd.IntN(3) == 0 {
			p.late = append(p.late, held)
		}
		return p.goods(a, 1+p.rnd.IntN(3))
	case n < 84: // a broken event; the correct event may arrive late
		wrong, right := p.poison(a)
		if p.rnd.IntN(2) == 0 {
			p.late = append(p.late, right)
		}
		return append([]*event{wrong}, p.goods(a, p.rnd.IntN(3))...)
	case n < 90: // a broken event and its correction, while an earlier version is missing
		held := p.good(a)
		wrong, right := p.poison(a)
		return append([]*event{wrong, p.good(a), right}, held)
	case n < 96:
		wrong := p.event(a, mistyped+int64(p.ids))
		right := *wrong
		right.version = a.next
		a.next++
		if p.s.pruning {
			p.ids++
			right.id = fmt.Sprintf("e%d", p.ids)
		}
		return []*event{wrong, &right}
	default: // an account whose first events are not in the topic
		b := p.source(fmt.Sprint("headless-", p.ids), false)
		b.next = 2 + p.rnd.Int64N(5)
		p.busy = append(p.busy, b)
		return p.goods(b, 1+p.rnd.IntN(2))
	}
}

// publish inserts an event into the outbox.
func (p *producer) publish(e *event) {
	p.published = append(p.published, e)
	p.s.exec(p.s.bank, "INSERT INTO outbox VALUES ($1, $2, $3)", e.account, e.version, string(e.value()))
}

// produce sends n groups of events of busy and calm accounts.
func (p *producer) produce(n int) {
	p.s.t.Helper()
	for range n {
		all := append(append([]*source{}, p.busy...), p.calm...)
		p.send(p.happens(all[p.rnd.IntN(len(all))]))
		if len(p.late) > 0 && p.rnd.IntN(8) == 0 {
			i := p.rnd.IntN(len(p.late))
			p.send(p.late[i : i+1])
			p.late = append(p.late[:i:i], p.late[i+1:]...)
		}
		if p.rnd.IntN(10) == 0 && !p.plain {
			p.transact()
		}
	}
}

// send appends events to the topic, in order.
func (p *producer) send(events []*event) {
	p.s.t.Helper()
	p.sendWith(p.s.kafka, p.append(events))
}

func (p *producer) sendWith(client *kgo.Client, records []*kgo.Record) {
	p.s.t.Helper()
	for _, r := range client.ProduceSync(p.s.t.Context(), records...) {
		if r.Err != nil {
			p.s.t.Error(r.Err)
		}
	}
}

// append appends events to the log, and returns their records.
func (p *producer) append(events []*event) (records []*kgo.Record) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	for _, original := range events {
		e := *original // each delivery gets its own offset
		e.offset = int64(len(p.s.log[e.partition]))
		p.s.log[e.partition] = append(p.s.log[e.partition], &e)
		records = append(records, p.record(&e))
		for _, a := range append(append([]*source{}, p.busy...), p.calm...) {
			if a.id == e.account && !e.garbage {
				a.sent = append(a.sent, &e)
			}
		}
	}
	return records
}

func (p *producer) record(e *event) *kgo.Record {
	return &kgo.Record{Topic: p.s.topic, Partition: e.partition, Key: []byte(e.account), Value: e.value()}
}

// transact sends an event of a calm account in a transaction, after a transaction with another event of
// the same version that is aborted.
func (p *producer) transact() {
	p.s.t.Helper()
	client := must(kgo.NewClient(kgo.SeedBrokers(p.s.addrs...), kgo.TransactionalID(fmt.Sprint(p.s.topic, "-", p.ids)),
		kgo.RecordPartitioner(kgo.ManualPartitioner())))(p.s.t)
	defer client.Close()
	a := p.calm[p.rnd.IntN(len(p.calm))]
	aborted, committed := p.event(a, a.next), p.good(a)
	nothing := &event{account: a.id, partition: a.partition, garbage: true, nothing: true}
	p.transaction(client, p.record(aborted), kgo.TryAbort)
	p.append([]*event{nothing, nothing}) // consumers read neither the record nor the end of the transaction
	p.ended(a.partition)
	p.transaction(client, p.append([]*event{committed})[0], kgo.TryCommit)
	p.append([]*event{nothing})
	p.ended(a.partition)
}

// ended waits until the brokers have written the end of a transaction. They write it later than they
// answer, so a record that is sent too soon would be before it in the topic.
func (p *producer) ended(partition int32) {
	p.s.t.Helper()
	want := int64(len(p.s.log[partition]))
	wait.Until(p.s.t, patience, "the end of the transaction is written", func() string {
		ends, err := p.s.admin.ListEndOffsets(p.s.t.Context(), p.s.topic)
		if err != nil {
			return err.Error()
		}
		if end, _ := ends.Lookup(p.s.topic, partition); end.Offset != want || end.Err != nil {
			return fmt.Sprintf("the end is %d, want %d: %v", end.Offset, want, end.Err)
		}
		return ""
	})
}

func (p *producer) transaction(client *kgo.Client, r *kgo.Record, end kgo.TransactionEndTry) {
	p.s.t.Helper()
	if err := client.BeginTransaction(); err != nil {
		p.s.t.Fatal(err)
	}
	p.sendWith(client, []*kgo.Record{r})
	if err := client.EndTransaction(p.s.t.Context(), end); err != nil {
		p.s.t.Fatal(err)
	}
}

// produceCalm sends n groups of events of calm accounts.
func (p *producer) produceCalm(n int) {
	p.s.t.Helper()
	for range n {
		p.send(p.happens(p.calm[p.rnd.IntN(len(p.calm))]))
	}
}

// sendAlongside sends events of calm accounts while the function do runs.
func (p *producer) sendAlongside(do func()) {
	p.s.t.Helper()
	main := p.rnd
	p.rnd = p.side
	defer func() { p.rnd = main }()
	var running sync.WaitGroup
	stop := make(chan struct{})
	running.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for range 200 {
			p.send(p.happens(p.calm[p.rnd.IntN(len(p.calm))]))
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	})
	defer running.Wait()
	defer close(stop)
	do()
}
