// Package stream makes streams of account events as a bank's topic would hold
// them after some bad years: redelivered, reordered and missing events, poison of
// every class, tombstones, and whatever headers and keys producers come up with.
// The same options make the same stream.
package stream

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
)

// Marker is in every payload and must never be in a log.
const Marker = "PAYLOAD-OF-A-CUSTOMER"

// IgnoredType is an event type to be named in --ignore-event-types.
const IgnoredType = "AccountRenamed"

// Header is one record header; a nil value is null, an empty one empty.
type Header struct {
	Key   string
	Value []byte
}

// Record is to be produced to a partition. Records of one account stay in one
// partition and in order.
type Record struct {
	Partition int32
	Key       []byte
	Value     []byte
	Headers   []Header
	// Transaction groups records that are produced in one transaction; 0: in none.
	Transaction int
	Abort       bool // the transaction is to be aborted
}

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
	// Transactions wraps some runs of records in transactions and adds aborted ones.
	Transactions bool
}

// Generate makes the stream, in the order in which it is to be produced.
func Generate(o Options) []Record {
	g := &generator{Options: o, rnd: rand.New(rand.NewPCG(o.Seed, 1))}
	for i := range o.Accounts {
		g.accounts = append(g.accounts, g.newAccount(i))
	}
	for len(g.out) < o.Records {
		g.step()
	}
	return g.out
}

type generator struct {
	Options
	rnd         *rand.Rand
	accounts    []*account
	out         []Record
	ids         int
	transaction int
	left        int // records left in the present run of records
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
		partition: int32(h.Sum32() % uint32(g.Partitions)),
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
}

// beginRun ends the present run of records and begins one inside or outside a
// transaction, sometimes behind a transaction that is aborted.
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
