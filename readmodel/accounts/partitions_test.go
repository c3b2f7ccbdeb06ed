package accounts_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel/accounts"
)

// bank simulates a database that several partitions write to. It refuses some events.
type bank struct {
	t       *rapid.T
	db      *store
	refused map[string]int64 // the lowest version of each account that is refused
	given   map[string]int   // how often each event was given to a custom projection
}

// partition simulates the worker of one partition.
type partition struct {
	*bank
	number        int32
	log           []projection.DecodedRecord
	durable, next int // indexes in log; durable is the first entry of a record
	limit         int // the most events of the next flush
	fold          *accounts.Fold
}

// The method add appends an event to the log, in a record of its own or as the next entry of the last
// record.
func (p *partition) add(d event.Decoded, entry bool) {
	r := projection.Record{Topic: "events", Partition: p.number, Message: event.Message{Value: []byte("any"), Entry: 1}}
	if n := len(p.log); n > 0 {
		last := &p.log[n-1]
		if r.Offset = last.Record.Offset + 1; entry {
			r.Offset, r.Entry, last.More = last.Record.Offset, last.Record.Entry+1, true
		}
	}
	p.log = append(p.log, projection.DecodedRecord{Record: r, Decoded: d})
}

// The method flushed moves the position to the first record that is not completely processed.
func (p *partition) flushed() {
	if p.next == 0 || !p.log[p.next-1].More {
		p.limit = min(1000, 2*p.limit)
	}
	for p.durable = p.next; p.durable > 0 && p.log[p.durable-1].More; {
		p.durable--
	}
}

// The method claim does the same as Balance.Claim.
func (p *partition) claim() {
	p.fold.Reset()
	p.next = p.durable
	var healable []string
	for id, parked := range p.db.parked {
		row, exists := p.db.rows[id]
		for v, e := range parked {
			switch {
			case !exists || e.Record.Partition != p.number:
			case v <= row.Version:
				delete(parked, v)
			case v == row.Version+1 && e.Class == event.VersionGap:
				healable = append(healable, id)
			}
		}
	}
	slices.Sort(healable)
	if err := p.fold.Read(p.t.Context(), healable); err != nil {
		p.t.Fatal(err)
	}
}

// The method flush does the same as Session.Flush.
func (p *partition) flush() {
	events := p.fold.Pending().Events
	c := p.fold.Gather()
	switch refused := p.refuses(c); {
	case p.stale(c):
		p.claim()
	case refused && events > 1:
		p.limit = max(1, min(p.limit, events)/2)
		p.claim()
	case refused:
		if !p.fold.Refuse("refused on purpose") {
			p.t.Fatal("an event that was refused before is refused again")
		}
		p.claim()
	default:
		for i := range c.CustomEvents {
			p.given[c.CustomEvents[i].Event.ID]++
		}
		p.db.write(p.t, c)
		p.fold.Flushed()
		p.flushed()
	}
}

func (b *bank) stale(c *accounts.Changes) bool {
	for _, s := range c.DecidedOn {
		if row, exists := b.db.rows[s.AccountID]; exists != s.Exists || exists && row.Version != s.Version {
			return true
		}
	}
	for rows := range c.RowChunks(c.NumRows) {
		for _, r := range rows {
			if row, exists := b.db.rows[r.AccountID]; exists != r.Exists || exists && row.Version != r.Stored {
				return true
			}
		}
	}
	return false
}

func (b *bank) refuses(c *accounts.Changes) bool {
	for rows := range c.RowChunks(c.NumRows) {
		for _, r := range rows {
			if v, refused := b.refused[r.AccountID]; refused && r.Account.Version >= v {
				return true
			}
		}
	}
	return false
}

func (p *partition) busy() bool {
	return p.durable < len(p.log) || p.fold.Pending().Healing || p.fold.Pending().Events > 0
}

// The method heal applies some of the parked events that can be applied, and flushes.
func (p *partition) heal() {
	if err := p.fold.Heal(p.t.Context(), p.limit); err != nil {
		p.t.Fatal(err)
	}
	p.flush()
}

// The method step does one random step. If calm is true, the process does not die.
func (p *partition) step(calm bool) {
	if pending := p.fold.Pending(); pending.Healing && pending.Events == 0 {
		p.heal()
		return
	}
	chunk := p.log[p.next:min(len(p.log), p.next+rapid.IntRange(1, 6).Draw(p.t, "chunk"))]
	n, err := p.fold.Apply(p.t.Context(), chunk, p.limit)
	if err != nil {
		p.t.Fatal(err)
	}
	p.next += n
	then := rapid.IntRange(0, 9).Draw(p.t, "then")
	switch {
	case then < 4, n < len(chunk), p.next == len(p.log):
		p.flush()
	case then == 4 && !calm: // the process dies before it flushes
		p.claim()
	}
}

// arrivals draws an order in which the events of a stream arrive. Some events arrive twice, and of
// some there is also a broken one.
func arrivals(t *rapid.T, stream []event.Decoded) []event.Decoded {
	arriving := slices.Clone(stream)
	if rapid.Bool().Draw(t, "shuffled") {
		arriving = rapid.Permutation(arriving).Draw(t, "order")
	}
	for range rapid.IntRange(0, 10).Draw(t, "more") {
		d := rapid.SampledFrom(stream).Draw(t, "again")
		if rapid.Bool().Draw(t, "broken") {
			d.Event.Currency, d.Event.Amount = event.Currency{}, 0
			d = faulty(d, event.InvalidAmount)
			if rapid.Bool().Draw(t, "other id") {
				d.Event.ID += "x"
			}
		}
		arriving = slices.Insert(arriving, rapid.IntRange(0, len(arriving)).Draw(t, "at"), d)
	}
	return arriving
}

// The events of an account are in two partitions, whose workers share a database. Some records have
// several entries. PostgreSQL refuses some of the events, and a worker may die before it flushes.
// Each event is delivered at least once, in any order. At the end, each account has all of its
// events, or those before its refused event.
func TestPartitionsShareAccounts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		stream := validStream(rt)
		b := &bank{t: rt, db: newStore(), refused: map[string]int64{}, given: map[string]int{}}
		b.db.piece = rapid.SampledFrom([]int{1, 2, 1000}).Draw(rt, "piece")
		for range rapid.IntRange(0, 2).Draw(rt, "refused") {
			ev := rapid.SampledFrom(stream).Draw(rt, "refused event").Event
			if v, refused := b.refused[ev.AccountID]; !refused || ev.Version < v {
				b.refused[ev.AccountID] = ev.Version
			}
		}
		opts := accounts.Options{FirstVersion: 1, ParkLimit: 1000, CacheBytes: rapid.SampledFrom([]int{1 << 20, 0}).Draw(rt, "cache"), Custom: true}
		var partitions []*partition
		for i := range rapid.Int32Range(1, 2).Draw(rt, "partitions") {
			partitions = append(partitions, &partition{bank: b, number: i, limit: 1000, fold: accounts.NewFold(opts, b.db)})
		}
		several := rapid.Bool().Draw(rt, "several entries")
		for _, d := range arrivals(rt, stream) {
			rapid.SampledFrom(partitions).Draw(rt, "partition").add(d, several && rapid.Bool().Draw(rt, "entry"))
		}
		for steps := 0; slices.ContainsFunc(partitions, (*partition).busy); steps++ {
			if steps > 20_000 {
				rt.Fatal("no end")
			}
			p := rapid.SampledFrom(partitions).Draw(rt, "turn")
			p.step(steps > 300)
		}
		b.healOverdue(partitions)
		b.check(rt, stream)
	})
}

// The method healOverdue claims the partitions until they have no event that can be applied, as
// watchOverdue does.
func (b *bank) healOverdue(partitions []*partition) {
	for before := ""; before != fmt.Sprint(b.db.rows, b.db.parked); {
		before = fmt.Sprint(b.db.rows, b.db.parked)
		for _, p := range partitions {
			for p.claim(); p.busy(); {
				p.heal()
			}
		}
	}
}

func (b *bank) check(t *rapid.T, stream []event.Decoded) {
	for id, want := range cleanPass(stream) {
		row, exists := b.db.rows[id]
		left := b.db.above(id, row.Version, 1000)
		if v, refused := b.refused[id]; refused {
			if exists != (v > 1) || row.Version != v-1 {
				t.Fatalf("account %s is at %+v, its event %d is refused, %d events are parked", id, row, v, len(left))
			}
		} else if row != want || len(left) > 0 {
			t.Fatalf("account %s: %+v, want %+v; %d events are still parked", id, row, want, len(left))
		}
	}
	for i := range stream {
		ev, want := &stream[i].Event, 1
		if v, refused := b.refused[ev.AccountID]; refused && ev.Version >= v {
			want = 0
		}
		if b.given[ev.ID] != want {
			t.Fatalf("event %s was given to the custom projection %d times, want %d", ev.ID, b.given[ev.ID], want)
		}
	}
}
