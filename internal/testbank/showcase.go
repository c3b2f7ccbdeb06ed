package testbank

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// A Showcase needs at least one account for each incident, and so many events on each account that
// some events follow a gap.
const (
	MinAccounts         = 20
	MinEventsPerAccount = 10
)

// RefusedCurrency is a currency in which the bank has no accounts. The demo makes its own database
// refuse rows in this currency.
const RefusedCurrency = "BTN"

// ShowcaseOptions configures a showcase. Accounts is at least MinAccounts. Events is at least
// Accounts times MinEventsPerAccount.
type ShowcaseOptions struct {
	Seed     uint64
	Accounts int
	Events   int    // of all accounts, without redeliveries
	Prefix   string // of the account ids
	// Refused adds an account in RefusedCurrency.
	Refused bool
}

// Showcase is the stream of the demo. It has the events of many accounts, and the events of
// different accounts are mixed. Each kind of incident happens once, on its own account.
type Showcase struct {
	Records []Record
	// Redelivered is how many of the records are second deliveries.
	Redelivered int
	Currencies  int
}

const (
	// redelivered is the percentage of records that are delivered a second time.
	redelivered = 5
	// redeliveredWithin limits the distance between the two deliveries. Fewer than this number of
	// later records of the account come before the second delivery.
	redeliveredWithin = 15
)

// Each of these incidents is in a showcase exactly once, on one account.
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

// missing leaves out the event of a version, which makes a permanent gap.
func missing(_ *generator, a *account) { a.next++ }

// poisoned adds an invalid event to the script, which makes a gap.
func poisoned(how int) func(*generator, *account) {
	return func(g *generator, a *account) {
		a.plan(g.record(a, g.poisoned(a, a.next, how)))
		a.next++
	}
}

// overflown adds two credits to the script. Each amount fits into 64-bit minor units, but the sum
// does not.
func overflown(g *generator, a *account) {
	for range 2 {
		a.plan(g.record(a, g.credit(a, a.next, inMinor("5000000000000000000", a.currency))))
		a.next++
	}
}

// cutOff adds the first half of an event to the script, and then the whole event.
func cutOff(g *generator, a *account) {
	whole := g.record(a, g.event(a, a.next))
	half := whole
	half.Value = whole.Value[:len(whole.Value)/2]
	a.plan(half, whole)
	a.next++
}

// NewShowcase makes the stream. It panics if the options are below the minimum.
func NewShowcase(o ShowcaseOptions) *Showcase {
	if o.Accounts < MinAccounts || o.Events < o.Accounts*MinEventsPerAccount {
		panic(fmt.Sprintf("testbank: %d accounts with %d events are too few", o.Accounts, o.Events))
	}
	g := newGenerator(Options{Seed: o.Seed, Accounts: o.Accounts, Partitions: 1, Prefix: o.Prefix, Clean: true})
	g.choose, g.tidy = g.ordinary, true
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
		if which < 0 && !sure { // at least one record of an account without an incident comes a second time
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

// lifeSizes distributes the events over the accounts. A few accounts get many events, and most
// accounts get few. Accounts with an incident get an average number of events.
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

// live adds all records of an account to its script. If the account has an incident, the incident
// comes near the end. If incident is len(incidents), the account's first event is missing.
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

// twice returns an account's records, with some of them a second time later in the list.
func (g *generator) twice(records []Record, percent int) []Record {
	again := map[int][]Record{} // by the index of the record after which they come again
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

// ordinary returns the next event of an account in a showcase. The first event opens the account.
// Credits are usually larger and rarer than debits. The last event of a few accounts closes the
// account.
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
