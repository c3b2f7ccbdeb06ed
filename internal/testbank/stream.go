// Package testbank is the bank that demo, tests and fault tests share: one generator
// of account events and one oracle that says what must become of them. It imports
// nothing but the standard library and shares no code with the projector, so that a
// mistake would have to be made twice to go unseen.
//
// The generator makes streams as a bank's topic would hold them after some bad years:
// events delivered twice, late, in another order or never, every kind of event that
// cannot be applied, tombstones, and whatever keys and headers producers come up with.
// The same options make the same stream. Generate draws incidents at random; Showcase
// is the demo's stream, with each incident once, on an account of its own.
//
// The Oracle follows the contract one record at a time: its own decoder, its own money
// (math/big), nothing batched, nothing cached. Statement and Turnover are what the
// projections of that name must hold. Package compare, below, holds PostgreSQL and the
// DLQ topic against it.
package testbank

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
)

// Header is one record header; a nil value is null, an empty one empty.
type Header struct {
	Key   string
	Value []byte
}

// Record is a record of the source topic. Records of one account stay in one partition
// and in order.
type Record struct {
	Partition int32
	Key       []byte
	Value     []byte // nil: a tombstone
	Headers   []Header

	// Its place, once it is in the topic. Timestamp is in milliseconds since the epoch.
	Offset    int64
	Timestamp int64

	// Transaction groups records that are produced in one transaction; 0: in none.
	Transaction int
	Abort       bool // the transaction is to be aborted
}

// Marker is in every payload and must never be in a log.
const Marker = "PAYLOAD-OF-A-CUSTOMER"

// IgnoredType is an event type to be named in --ignore-event-types.
const IgnoredType = "AccountRenamed"

// Options say what a stream holds.
type Options struct {
	Seed       uint64
	Records    int // of them a few are of aborted transactions
	Partitions int32
	Accounts   int
	Prefix     string // of the accounts' names; default "acc-"
	// Scattered names are so far apart that no broken record hits another account,
	// which may be in another partition, where its order would be anybody's guess.
	Scattered bool
	// Clean leaves everything out but events in order and redeliveries.
	Clean bool
	// Rivals lets two events wait for one version. Which of them is applied depends
	// on how often each is delivered, so it is left out where faults redeliver.
	Rivals bool
	// Ranges sends, now and then, a whole range of a partition again, as a producer does
	// that has lost its own position, and tombstones.
	Ranges bool
	// Transactions wraps some runs of records in transactions and adds aborted ones.
	Transactions bool
}

// Generate makes the stream, in the order in which it is to be produced.
func Generate(o Options) []Record {
	g := newGenerator(o)
	for i := range o.Accounts {
		g.accounts = append(g.accounts, g.newAccount(i))
	}
	for len(g.out) < o.Records {
		g.step()
	}
	return g.out
}

// generator makes one stream. All its chance comes from one seeded source, drawn from
// in a fixed order.
type generator struct {
	Options
	happen      func(a *account, version int64) (kind string, data map[string]any)
	tidy        bool // no headers, the account as key, nothing but what an event needs
	rnd         *rand.Rand
	accounts    []*account
	out         []Record
	ids         int
	transaction int
	sent        [][]Record // by partition, for Ranges
	left        int        // records left in the present run of records
}

func newGenerator(o Options) *generator {
	g := &generator{Options: o, rnd: rand.New(rand.NewPCG(o.Seed, 1))} //nolint:gosec // G404: nothing here is secret, and it must be repeatable
	g.happen = g.anything
	return g
}

func (g *generator) newAccount(i int) *account {
	id := fmt.Sprintf("%s%08d", cmp.Or(g.Prefix, "acc-"), i)
	if g.Scattered {
		far := fnv.New64a()
		_, _ = far.Write([]byte(id))
		id = fmt.Sprintf("acc-%016x", far.Sum64())
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	a := &account{
		id: id, next: 1, key: []byte(id),
		partition: int32(h.Sum32() % uint32(g.Partitions)), //nolint:gosec // G115: both fit 31 bits
		currency:  pick(g, "EUR", "EUR", "EUR", "USD", "GBP", "CHF", "JPY", "ISK", "KWD", "BHD", "CLF"),
	}
	if g.Clean {
		return a
	}
	switch g.rnd.IntN(33) {
	case 0:
		a.key = nil
	case 1:
		a.key = []byte{} // empty is not null
	case 2:
		a.key = []byte("customer-of-" + id)
	}
	return a
}

// step emits one record of some account.
func (g *generator) step() {
	if g.left == 0 && g.Transactions {
		g.beginRun()
	}
	g.left--
	a := g.accounts[g.rnd.IntN(len(g.accounts))]
	if len(a.script) == 0 {
		g.write(a)
	}
	r := a.script[0]
	a.script = a.script[1:]
	r.Transaction = g.transaction
	a.remember(r)
	g.out = append(g.out, r)
	if g.Ranges {
		g.sendAgain(r)
	}
}

// sendAgain sends some of what was sent to the record's partition once more, or a
// tombstone, or mostly nothing.
func (g *generator) sendAgain(r Record) {
	if g.sent == nil {
		g.sent = make([][]Record, g.Partitions)
	}
	g.sent[r.Partition] = append(g.sent[r.Partition], r)
	before := g.sent[r.Partition]
	switch n := g.rnd.IntN(1000); {
	case n < 50:
		g.out = append(g.out, before[g.rnd.IntN(len(before))])
	case n < 60:
		from := g.rnd.IntN(len(before))
		g.out = append(g.out, before[from:min(len(before), from+1+g.rnd.IntN(150))]...)
	case n < 65:
		g.out = append(g.out, Record{Partition: r.Partition, Key: r.Key})
	}
}

// beginRun ends the present run of records and begins one inside or outside a
// transaction, sometimes after a transaction that is aborted.
func (g *generator) beginRun() {
	g.transaction, g.left = 0, 1+g.Records/10
	if g.out == nil || g.chance(50) {
		return
	}
	g.ids++
	g.transaction, g.left = g.ids, 1+g.Records/100
	if g.chance(50) {
		return
	}
	for range 1 + g.Records/200 {
		a := g.accounts[g.rnd.IntN(len(g.accounts))]
		r := g.record(a, g.event(a, a.next))
		r.Transaction, r.Abort = g.ids, true
		g.out = append(g.out, r)
	}
	g.ids++
	g.transaction = g.ids
}

// chance is true in percent of 100 cases.
func (g *generator) chance(percent int) bool { return g.rnd.IntN(100) < percent }

func pick[T any](g *generator, from ...T) T { return from[g.rnd.IntN(len(from))] }
