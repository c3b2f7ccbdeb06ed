// Package testbank generates account events and computes the expected results. The demo, the tests
// and the fault tests use it. It imports only the standard library and shares no code with the
// projector. So a defect in the projector's code does not change the expected results.
//
// The generator makes streams with many faults. Events are delivered twice, late, in another order
// or never. There are events with defects that prevent their application, tombstones, and unusual
// keys and headers. The same options make the same stream. Generate chooses incidents at random.
// Showcase is the demo's stream, in which each incident happens once, on its own account.
//
// The Oracle processes one record at a time, with its own decoder and with math/big for money. It
// has no batches and no caches. The functions Statement and Turnover return the expected rows of
// the projections account_statement and daily_turnover. Package compare compares PostgreSQL and the
// DLQ topic with the oracle.
package testbank

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
)

// Header is one record header. A nil value is null, which differs from an empty value.
type Header struct {
	Key   string
	Value []byte
}

// Record is a record of the source topic. Records of one account stay in one partition
// and in order.
type Record struct {
	Partition int32
	Key       []byte
	Value     []byte // nil for a tombstone
	Headers   []Header

	// Offset and Timestamp are set when the record is in the topic. Timestamp is in milliseconds
	// since the epoch.
	Offset    int64
	Timestamp int64

	// Transaction is the number of the producer transaction that holds the record, or 0 for none.
	Transaction int
	Abort       bool // the transaction must be aborted
}

// Marker is in the payload of events, except in a showcase. It must never appear in a log.
const Marker = "PAYLOAD-OF-A-CUSTOMER"

// IgnoredType is an event type for --ignore-event-types.
const IgnoredType = "AccountRenamed"

// Options configures a stream.
type Options struct {
	Seed       uint64
	Records    int // includes the few records of aborted transactions
	Partitions int32
	Accounts   int
	Prefix     string // of the account names; default "acc-"
	// Scattered makes account names so different that a broken record never names another account.
	// That account could be in another partition, and the order between partitions is not defined.
	Scattered bool
	// Clean limits the stream to events in order and redeliveries.
	Clean bool
	// Rivals includes conflicting events with the same version, which wait for the event of the
	// version before. The event that is applied depends on how often each one is delivered, so
	// tests with redelivering faults leave Rivals off.
	Rivals bool
	// Ranges includes tombstones. It also repeats runs of records of a partition, as a producer
	// does after it has lost the position in its source.
	Ranges bool
	// Transactions puts some runs of records into transactions and adds aborted transactions.
	Transactions bool
}

// Generate returns the records in the order in which they must be produced.
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

// generator makes one stream. All random choices come from one seeded source in a fixed order, so
// the stream can be reproduced.
type generator struct {
	Options
	choose      func(a *account, version int64) (kind string, data map[string]any)
	tidy        bool // no headers, the account as key, no optional fields
	rnd         *rand.Rand
	accounts    []*account
	out         []Record
	ids         int
	transaction int
	sent        [][]Record // by partition, only with Ranges
	left        int        // records left in the current run
}

func newGenerator(o Options) *generator {
	g := &generator{Options: o, rnd: rand.New(rand.NewPCG(o.Seed, 1))} //nolint:gosec // G404: nothing here is secret, and it must be repeatable
	g.choose = g.anything
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
		a.key = []byte{} // an empty key differs from a null key
	case 2:
		a.key = []byte("customer-of-" + id)
	}
	return a
}

// step emits one record of a random account.
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

// sendAgain sometimes repeats earlier records of the same partition as r, or sends a tombstone. In
// most calls it does nothing.
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

// beginRun begins the next run of records, inside or outside a transaction. Sometimes it first adds
// an aborted transaction.
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
	aborted := g.ids // g.event takes ids too
	for range 1 + g.Records/200 {
		a := g.accounts[g.rnd.IntN(len(g.accounts))]
		r := g.record(a, g.event(a, a.next))
		r.Transaction, r.Abort = aborted, true
		g.out = append(g.out, r)
	}
	g.ids++
	g.transaction = g.ids
}

func (g *generator) chance(percent int) bool { return g.rnd.IntN(100) < percent }

func pick[T any](g *generator, from ...T) T { return from[g.rnd.IntN(len(from))] }
