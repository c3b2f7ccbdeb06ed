package own_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"projector/projection/file"
)

type delivery struct{ account, version, variant int }

// These are the variants of an event. Each variant has its own event id.
const (
	good = iota
	another
	poison  // PostgreSQL refuses it
	ignored // its type is not in the list of types
)

func (d delivery) value(prefix string) string {
	kind, n := "PointsEarned", "1"
	switch d.variant {
	case poison:
		n = "x"
	case ignored:
		kind = "Other"
	}
	return fmt.Sprintf(`{"eventId":"%s-%d-%d-%d","eventType":%q,"accountId":"%s-%d","version":%d,"occurredAt":"2026-01-01T00:00:00Z","data":{"points":%q}}`,
		prefix, d.account, d.version, d.variant, kind, prefix, d.account, d.version, n)
}

// oracle processes records one at a time by the rules of docs/events.md.
type oracle struct {
	ordered   bool
	processed map[delivery]bool // in mode once: the processed events
	at        map[int]int       // versions of accounts
	parked    map[int]map[int]int
	given     map[int][]string // versions passed to the SQL, by account
}

func (o *oracle) deliver(d delivery) {
	if !o.ordered {
		if !o.processed[d] && d.variant != poison {
			o.processed[d] = true
			o.give(d)
		}
		return
	}
	switch next := o.at[d.account] + 1; {
	case d.version < next:
		return
	case d.version > next || d.variant == poison:
		if o.parked[d.account] == nil {
			o.parked[d.account] = map[int]int{}
		}
		if _, first := o.parked[d.account][d.version]; !first {
			o.parked[d.account][d.version] = d.variant
		}
		return
	}
	for there := true; there && d.variant != poison; {
		o.at[d.account] = d.version
		o.give(d)
		d.version++
		d.variant, there = o.parked[d.account][d.version]
	}
}

func (o *oracle) give(d delivery) {
	if d.variant != ignored {
		o.given[d.account] = append(o.given[d.account], fmt.Sprint(d.version))
	}
}

// The method rows returns the expected rows of the table.
func (o *oracle) rows(prefix string) (lines []string) {
	for account := range 3 {
		if versions := o.given[account]; len(versions) > 0 {
			line := fmt.Sprintf("%s-%d %d", prefix, account, len(versions))
			if o.ordered {
				line += " " + strings.Join(versions, " ")
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// TestEachEventIsGivenOnce shows that the SQL gets the events that docs/events.md requires. The
// sizes of flushes, the restarts and the changes of the owner are random.
func TestEachEventIsGivenOnce(t *testing.T) {
	t.Parallel()
	pool, run := stage(t), 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		mode := rapid.SampledFrom([]file.Mode{file.Once, file.Ordered}).Draw(rt, "mode")
		eachEventIsGivenOnce(t, rt, pool, parse(t, fmt.Sprintf(loyalty, mode)), fmt.Sprint("r", run))
	})
}

func eachEventIsGivenOnce(t *testing.T, rt *rapid.T, pool *pgxpool.Pool, p file.Projection, prefix string) {
	t.Helper()
	topic := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) delivery {
		return delivery{
			account: rapid.IntRange(0, 2).Draw(rt, "account"), version: rapid.IntRange(1, 5).Draw(rt, "version"),
			variant: rapid.SampledFrom([]int{good, good, good, another, poison, ignored}).Draw(rt, "variant"),
		}
	}), 1, 25).Draw(rt, "topic")
	log := make([]string, len(topic))
	for i, d := range topic {
		log[i] = d.value(prefix)
	}
	o := &oracle{
		ordered: p.Mode == file.Ordered, processed: map[delivery]bool{}, at: map[int]int{},
		parked: map[int]map[int]int{}, given: map[int][]string{},
	}
	owner := func() *feeder {
		f := feedAs(t, pool, p, prefix)
		f.begin(rapid.SampledFrom([]int{1, 2, 3, 1000}).Draw(rt, "events of a flush"))
		return f
	}
	f := owner()
	for reads := rapid.IntRange(1, 3).Draw(rt, "reads"); reads > 0; reads-- {
		from := rapid.IntRange(0, int(f.next)).Draw(rt, "from")
		if rapid.Bool().Draw(rt, "another owner") {
			f = owner()
		}
		f.claimAt(int64(from))
		for end := from; end < len(log); {
			start := end
			end += rapid.IntRange(1, len(log)-end).Draw(rt, "piece")
			f.consume(log[:end])
			for _, d := range topic[start:end] {
				o.deliver(d)
			}
		}
	}
	columns := "account_id, events"
	if o.ordered {
		columns += ", versions"
	}
	got := rows(t, pool, "SELECT "+columns+" FROM loyalty WHERE account_id LIKE '"+prefix+"-%' ORDER BY account_id")
	if want := o.rows(prefix); fmt.Sprint(got) != fmt.Sprint(want) {
		rt.Fatalf("got %q, want %q", got, want)
	}
}

// In TestARefusedEventComesAgain, PostgreSQL refuses the parked event of a version. When the gap
// before this version is filled, PostgreSQL also refuses another record of the version. Processing
// must still reach the end of the log, with flushes of 1, 2 or 1000 events. A refused flush may
// repeat its dead letters.
func TestARefusedEventComesAgain(t *testing.T) {
	t.Parallel()
	for _, events := range []int{1, 2, 1000} {
		t.Run(fmt.Sprint(events), func(t *testing.T) {
			t.Parallel()
			f := feed(t, stage(t), parse(t, fmt.Sprintf(loyalty, file.Ordered)))
			f.begin(events)
			var log []string
			for _, d := range []delivery{{2, 2, poison}, {2, 1, ignored}, {2, 2, poison}, {2, 3, good}} {
				log = append(log, d.value("r"))
			}
			f.consume(log)
			same(t, "dead letters", slices.Compact(slices.Sorted(slices.Values(f.driver.classes()))),
				[]string{"rejected_by_database r-2-2-2", "version_gap r-2-2-2", "version_gap r-2-3-0"})
		})
	}
}
