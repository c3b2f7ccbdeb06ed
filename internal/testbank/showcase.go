package testbank

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// What a Showcase needs at least: an account for each incident, and on each account
// enough events for a gap to have something after it.
const (
	MinAccounts         = 20
	MinEventsPerAccount = 10
)

// RefusedCurrency is a currency the bank does not keep accounts in. The demo makes its
// own database refuse rows in it.
const RefusedCurrency = "BTN"

// ShowcaseOptions say what to show. Accounts is at least MinAccounts, Events at least
// MinEventsPerAccount an account.
type ShowcaseOptions struct {
	Seed     uint64
	Accounts int
	Events   int    // in the lives of all accounts; redeliveries come on top
	Prefix   string // of account ids
	// Refused adds an account in RefusedCurrency.
	Refused bool
}

// Showcase is the demo's stream: the lives of many accounts from their opening on,
// side by side, and every incident there is once, on an account of its own.
type Showcase struct {
	Records []Record
	// Redelivered is how many of them are second deliveries.
	Redelivered int
	Currencies  int
}

const (
	// redelivered is how many of a hundred records are delivered a second time.
	redelivered = 5
	// redeliveredWithin is how many records of the account may lie between the two.
	redeliveredWithin = 15
)

// incidents are planned into an account's life when its turn has come.
var incidents = []func(*generator, *account){
	func(g *generator, a *account) { g.late(a, 3) },
	(*generator).failsAtItsTurn,
	missing,
	poisoned(numberAmount),
	poisoned(unknownType),
	poisoned(preciseAmount),
	poisoned(negativeAmount),
	poisoned(inventedCurrency),
	poisoned(wrongCurrency),
	overflown,
	(*generator).corrected,
	(*generator).conflict,
	cutOff,
	func(_ *generator, a *account) { a.plan(Record{Key: a.key}) }, // a tombstone
}

// missing never delivers an event: a gap that stays.
func missing(_ *generator, a *account) { a.next++ }

// poisoned sends an event that is wrong, which leaves a gap.
func poisoned(how int) func(*generator, *account) {
	return func(g *generator, a *account) {
		a.plan(g.record(a, g.poisoned(a, a.next, how)))
		a.next++
	}
}

// overflown credits two amounts that each fit 64-bit minor units, but not together.
func overflown(g *generator, a *account) {
	for range 2 {
		a.plan(g.record(a, g.credit(a, a.next, inMinor("5000000000000000000", a.currency))))
		a.next++
	}
}

// cutOff delivers half of an event before the whole.
func cutOff(g *generator, a *account) {
	whole := g.record(a, g.event(a, a.next))
	half := whole
	half.Value = whole.Value[:len(whole.Value)/2]
	a.plan(half, whole)
	a.next++
}

// NewShowcase makes the stream. It panics when the options are below the minimum.
func NewShowcase(o ShowcaseOptions) *Showcase {
	if o.Accounts < MinAccounts || o.Events < o.Accounts*MinEventsPerAccount {
		panic(fmt.Sprintf("testbank: %d accounts with %d events are too few", o.Accounts, o.Events))
	}
	g := newGenerator(Options{Seed: o.Seed, Accounts: o.Accounts, Partitions: 1, Prefix: o.Prefix, Clean: true})
	g.happen, g.tidy = g.ordinary, true
	unlucky := g.rnd.Perm(o.Accounts)[:len(incidents)+2]
	sizes := g.lifeSizes(o.Events, unlucky)
	s, currencies := &Showcase{Records: make([]Record, 0, o.Events+o.Events/10)}, map[string]bool{}
	lives, sure, order := make([][]Record, o.Accounts), false, make([]int32, 0, o.Events+o.Events/10)
	for i := range lives {
		a := g.newAccount(i + 1)
		a.events = sizes[i]
		which := slices.Index(unlucky, i)
		again := redelivered
		if o.Refused && which == len(incidents)+1 {
			a.currency, again = RefusedCurrency, 0
		}
		currencies[a.currency] = true
		g.live(a, which)
		lives[i] = g.twice(a.script, again)
		if which < 0 && !sure { // chance may want none of an account that is sound
			lives[i], sure = append(lives[i], lives[i][0]), true
		}
		s.Redelivered += len(lives[i]) - len(a.script)
		for range lives[i] {
			order = append(order, int32(i))
		}
	}
	g.rnd.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for _, i := range order {
		s.Records = append(s.Records, lives[i][0])
		lives[i] = lives[i][1:]
	}
	s.Currencies = len(currencies)
	return s
}

// lifeSizes shares the events out: a few accounts are busy, most are not. Those
// with an incident get an average share.
func (g *generator) lifeSizes(events int, unlucky []int) []int {
	sizes, weights := make([]int, g.Accounts), make([]float64, g.Accounts)
	rest, total, last := events, 0.0, 0
	for i := range sizes {
		sizes[i] = 1
		if slices.Contains(unlucky, i) {
			sizes[i] = events / g.Accounts
		} else {
			weights[i] = math.Exp(g.rnd.NormFloat64())
			total += weights[i]
			last = i
		}
		rest -= sizes[i]
	}
	left := rest
	for i, w := range weights {
		share := int(float64(rest) * w / total)
		sizes[i] += share
		left -= share
	}
	sizes[last] += left
	return sizes
}

// live plans an account's whole life, with one of the incidents near the end if it is
// to have one. The incident after the last is a first event that never comes.
func (g *generator) live(a *account, incident int) {
	turn := int64(-1)
	switch {
	case incident == len(incidents):
		missing(g, a)
	case incident >= 0 && incident < len(incidents):
		turn = int64(min(a.events*4/5, a.events-4)) + 1
	}
	for a.next <= int64(a.events) {
		if a.next == turn {
			turn = -1
			incidents[incident](g, a)
			continue
		}
		g.good(a)
	}
}

// twice delivers some of an account's records a second time.
func (g *generator) twice(records []Record, percent int) []Record {
	again := map[int][]Record{} // by the record they follow
	for i, r := range records {
		if g.chance(percent) {
			behind := min(len(records)-1, i+g.rnd.IntN(redeliveredWithin))
			again[behind] = append(again[behind], r)
		}
	}
	delivered := make([]Record, 0, len(records)+len(again))
	for i, r := range records {
		delivered = append(append(delivered, r), again[i]...)
	}
	return delivered
}

// ordinary is what happens to an account of a showcase: its opening first, credits
// that are larger and rarer than debits and, of a few accounts, their closing last.
func (g *generator) ordinary(a *account, version int64) (kind string, data map[string]any) {
	n := g.rnd.IntN(100)
	switch {
	case version == 1:
		return "AccountOpened", map[string]any{"currency": a.currency}
	case version == int64(a.events) && n < 4:
		return "AccountClosed", nil
	}
	kind, whole := "FundsDebited", 1+g.rnd.IntN(120)
	if version == 2 || n < 35 {
		kind, whole = "FundsCredited", 50+g.rnd.IntN(400)
	}
	amount := strconv.Itoa(whole)
	if n := digits[a.currency]; n > 0 {
		amount += fmt.Sprintf(".%0*d", n, g.rnd.IntN(pow10(n)))
	} else {
		amount += "00"
	}
	return kind, map[string]any{"amount": amount, "currency": a.currency}
}
