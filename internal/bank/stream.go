package bank

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// What a Stream needs at least: an account for each mishap, and on each account
// enough events for a hole to have something behind it.
const (
	MinAccounts         = 20
	MinEventsPerAccount = 10
)

const (
	// redelivered is the share of records that are delivered a second time.
	redelivered = 0.05
	// redeliveredWithin is how many records of the account may lie between the two.
	redeliveredWithin = 15
)

// The month the stream tells of.
var (
	firstDay = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	period   = 30 * 24 * time.Hour
)

// Options say what stream to make. Accounts is at least MinAccounts, Events at
// least MinEventsPerAccount an account.
type Options struct {
	Accounts int
	Events   int // in the lives of all accounts; redeliveries come on top
	Seed     uint64
	Prefix   string // of account ids
	// Refused adds an account in RefusedCurrency.
	Refused bool
}

// Record is one record to produce. All records of an account have the same key and
// must keep their order. Value is nil for a tombstone.
type Record struct {
	Key   []byte
	Value []byte

	at time.Duration // since firstDay: the order of the stream
}

// Stream is what the bank's systems produce.
type Stream struct {
	Records []Record
	// Redelivered is how many of them are second deliveries.
	Redelivered int
	Currencies  int
}

// generator makes one stream. All its chance comes from one seeded source, drawn
// from in a fixed order.
type generator struct {
	rng  *rand.Rand
	opts Options
}

// NewStream makes the stream. It panics when the options are below the minimum.
func NewStream(opts Options) *Stream {
	if opts.Accounts < MinAccounts || opts.Events < opts.Accounts*MinEventsPerAccount {
		panic(fmt.Sprintf("bank: %d accounts with %d events are too few", opts.Accounts, opts.Events))
	}
	g := &generator{opts: opts, rng: rand.New(rand.NewPCG(opts.Seed, 0))} //nolint:gosec // nothing here is secret, and it must be repeatable
	happening := mishaps(opts.Refused)
	unlucky := g.rng.Perm(opts.Accounts)[:len(happening)]
	sizes := g.lifeSizes(unlucky)
	s := &Stream{Records: make([]Record, 0, opts.Events+opts.Events/10)}
	currencies := map[string]bool{}
	for i := range opts.Accounts {
		currency := g.currency()
		happens := ordinary
		if which := slices.Index(unlucky, i); which >= 0 {
			happens, currency = happening[which], cmp.Or(happening[which].currency, mainCurrency)
		}
		currencies[currency] = true
		life := g.life(fmt.Sprintf("%s%08d", opts.Prefix, i+1), currency, sizes[i])
		if happens.currency == "" {
			g.deliver(s, happens.happen(g, life), redelivered)
		} else {
			g.deliver(s, happens.happen(g, life), 0)
		}
	}
	slices.SortStableFunc(s.Records, func(a, b Record) int { return cmp.Compare(a.at, b.at) })
	s.Currencies = len(currencies)
	return s
}

// lifeSizes shares the events out: a few accounts are busy, most are not. Those
// with a mishap get an average share.
func (g *generator) lifeSizes(unlucky []int) []int {
	sizes := make([]int, g.opts.Accounts)
	average := g.opts.Events / g.opts.Accounts
	rest := g.opts.Events
	weights := make([]float64, g.opts.Accounts)
	total := 0.0
	for i := range sizes {
		if slices.Contains(unlucky, i) {
			sizes[i] = average
		} else {
			sizes[i] = 1
			weights[i] = math.Exp(g.rng.NormFloat64())
			total += weights[i]
		}
		rest -= sizes[i]
	}
	left, lastLucky := rest, 0
	for i, w := range weights {
		if w == 0 {
			continue
		}
		share := int(float64(rest) * w / total)
		sizes[i] += share
		left -= share
		lastLucky = i
	}
	sizes[lastLucky] += left
	return sizes
}

func (g *generator) currency() string {
	pick := g.rng.IntN(100)
	for _, s := range shares {
		if pick -= s.percent; pick < 0 {
			return s.currency
		}
	}
	return mainCurrency
}

// deliver adds an account's records to the stream, spread over the period, some of
// them twice.
func (g *generator) deliver(s *Stream, records []Record, twice float64) {
	again := map[int][]Record{} // by the record they come behind
	total := len(records)
	for i, r := range records {
		if g.rng.Float64() < twice {
			behind := min(len(records)-1, i+g.rng.IntN(redeliveredWithin))
			again[behind] = append(again[behind], r)
			total++
		}
	}
	n := 0
	add := func(r Record) {
		r.at = g.moment(n, total)
		s.Records = append(s.Records, r)
		n++
	}
	for i, r := range records {
		add(r)
		for _, copied := range again[i] {
			add(copied)
		}
	}
	s.Redelivered += total - len(records)
}

// moment is a time in the i-th of n equal parts of the period.
func (g *generator) moment(i, n int) time.Duration {
	part := float64(period) / float64(n)
	return time.Duration((float64(i) + 0.99*g.rng.Float64()) * part)
}
