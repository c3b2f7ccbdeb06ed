package testbank

import "strings"

// account is the state of one account's producer. The field script contains the records that the
// producer will send next, in order.
type account struct {
	id        string
	partition int32
	key       []byte
	currency  string
	events    int // number of all events of the account in a showcase, else 0

	next   int64 // version of the next good event
	stuck  int   // number of events sent after a permanent gap
	script []Record
	sent   []Record // the latest records sent
}

const (
	remembered = 12
	// maxStuck limits how many events an account sends after a permanent gap.
	maxStuck = 25
)

func (a *account) remember(r Record) {
	a.sent = append(a.sent, r)
	if len(a.sent) > remembered {
		a.sent = a.sent[1:]
	}
}

// write adds the account's next records to its script. When the whole script is sent, the events of
// all versions below a.next are delivered, except after a permanent gap.
func (g *generator) write(a *account) {
	switch n := g.rnd.IntN(1000); {
	case a.stuck > 0 && a.stuck < maxStuck:
		a.stuck++
		g.good(a)
	case a.stuck > 0:
		g.redeliver(a)
	case n < 50 && len(a.sent) > 0:
		g.redeliver(a)
	case g.Clean || n < 860:
		g.good(a)
	case n < 900:
		g.shuffled(a, 2+g.rnd.IntN(5))
	case n < 945:
		g.corrected(a)
	case n < 955:
		g.failsAtItsTurn(a)
		a.plan(g.record(a, g.event(a, a.next-2))) // the correct event
	case n < 965:
		g.conflict(a)
	case n < 985:
		g.noise(a)
	case n < 988:
		g.overflow(a)
	case n < 990:
		g.late(a, 5+g.rnd.IntN(60))
	case n < 993 && g.Rivals:
		g.conflictingPair(a)
	case n < 996:
		g.permanentGap(a)
	default:
		g.good(a)
	}
}

func (a *account) plan(r ...Record) { a.script = append(a.script, r...) }

// good adds the next event, which is valid, to the script.
func (g *generator) good(a *account) {
	a.plan(g.record(a, g.event(a, a.next)))
	a.next++
}

func (g *generator) redeliver(a *account) {
	r := a.sent[g.rnd.IntN(len(a.sent))]
	a.plan(r)
}

// shuffled adds the next n events to the script in random order.
func (g *generator) shuffled(a *account, n int) {
	from := len(a.script)
	for range n {
		g.good(a)
	}
	events := a.script[from:]
	g.rnd.Shuffle(n, func(i, j int) { events[i], events[j] = events[j], events[i] })
}

// late adds several events to the script before the event that all of them wait for.
func (g *generator) late(a *account, before int) {
	first := g.record(a, g.event(a, a.next))
	a.next++
	for range before {
		g.good(a)
	}
	a.plan(first)
}

// permanentGap makes a version that can never be applied, because its event is lost, or is invalid
// and never corrected. Then permanentGap adds the next event to the script.
func (g *generator) permanentGap(a *account) {
	if g.chance(50) {
		a.plan(g.record(a, g.poison(a, a.next)))
	}
	a.next++
	a.stuck = 1
	g.good(a)
}

// corrected adds an invalid event to the script, then some later events, then the correct event.
func (g *generator) corrected(a *account) {
	a.plan(g.record(a, g.poison(a, a.next)))
	right := g.record(a, g.event(a, a.next))
	a.next++
	for range g.rnd.IntN(4) {
		g.good(a)
	}
	a.plan(right)
}

// failsAtItsTurn adds to the script an event that can never be applied. This event comes before its
// predecessor. When the predecessor arrives, the early event is dead-lettered a second time and
// makes a gap.
func (g *generator) failsAtItsTurn(a *account) {
	if a.next == 1 {
		g.good(a)
	}
	first := g.event(a, a.next)
	wrong := g.poisoned(a, a.next+1, wrongCurrency)
	behind := g.event(a, a.next+2)
	a.plan(g.record(a, wrong), g.record(a, behind), g.record(a, first))
	a.next += 3
}

// conflictingPair adds two conflicting events with the same version to the script, before the event
// that both wait for. The first of the two events is invalid.
func (g *generator) conflictingPair(a *account) {
	first, wrong, right := g.event(a, a.next), g.poison(a, a.next+1), g.record(a, g.event(a, a.next+1))
	a.plan(g.record(a, wrong), right, g.record(a, first), g.record(a, g.event(a, a.next+2)), right)
	a.next += 3
}

// conflict adds a valid event to the script, and then another event with the same version.
func (g *generator) conflict(a *account) {
	g.good(a)
	a.plan(g.record(a, g.event(a, a.next-1)))
}

// overflow adds to the script an amount that may exceed the range of the balance, then the correct
// event. It does so for two versions.
func (g *generator) overflow(a *account) {
	if a.next == 1 {
		g.good(a)
	}
	const most = "9223372036854775807"
	for range 2 { // if the first amount fits, the second does not
		a.plan(g.record(a, g.credit(a, a.next, inMinor(most, a.currency))), g.record(a, g.event(a, a.next)))
		a.next++
	}
}

// inMinor formats minor units as an amount of the currency.
func inMinor(minor, currency string) string {
	whole := len(minor) - decimalsOf(currency)
	return strings.TrimSuffix(minor[:whole]+"."+minor[whole:], ".")
}

func other(currency string) string {
	if currency == "EUR" {
		return "USD"
	}
	return "EUR"
}
