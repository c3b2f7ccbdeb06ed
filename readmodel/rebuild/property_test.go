package rebuild_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"projector/internal/devstack/devtest"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/rebuild"
	"projector/readmodel/repair"
)

// In TestARebuildGivesWhatWasNeverDamaged, a database is filled by consumers, repaired by
// operators, damaged, and rebuilt while consumers continue. The same is done to another database
// without the damage. Both databases must then be equal, except for rows that the rebuild reports
// as unchanged, and rows that may have events which the topic does not have. Without any damage,
// all rows must be equal.
func TestARebuildGivesWhatWasNeverDamaged(t *testing.T) {
	devtest.FewerChecks(t, "20")
	for _, d := range definitions(t) {
		t.Run(d.Name(), func(t *testing.T) {
			pool, clean := openPool(t), openPool(t)
			rapid.Check(t, func(rt *rapid.T) {
				emptied(t, pool)
				emptied(t, clean)
				rebuildsWhatWasNeverDamaged(t, rt, &d, pool, clean)
			})
		})
	}
}

// pair is a damaged database and an undamaged one.
type pair struct {
	t           *testing.T
	rt          *rapid.T
	fatal       func(...any) // ends the check
	d           *definition
	log         log
	live, clean *consumer
	given       map[string]bool // accounts with applied events that the topic does not have
	discarded   map[projection.RecordRef]bool
	damaged     bool
}

// onBoth calls the function do for each of the two databases.
func (p *pair) onBoth(do func(*consumer)) { do(p.live); do(p.clean) }

// The method move makes the consumers of both databases read up to the same random offsets.
func (p *pair) move(what string) {
	ends := map[int32]int64{}
	for number, values := range p.log {
		ends[int32(number)] = rapid.Int64Range(p.live.at[int32(number)], int64(len(values))).Draw(p.rt, what)
	}
	p.onBoth(func(c *consumer) { c.consumeTo(p.t, ends) })
}

func rebuildsWhatWasNeverDamaged(t *testing.T, rt *rapid.T, d *definition, pool, clean *pgxpool.Pool) {
	t.Helper()
	p := &pair{t: t, rt: rt, fatal: rt.Fatal, d: d, log: drawLog(rt), given: map[string]bool{}, discarded: map[projection.RecordRef]bool{}}
	p.live, p.clean = newConsumer(*d, pool, p.log), newConsumer(*d, clean, p.log)
	p.move("consumed")
	for range rapid.IntRange(0, 4).Draw(rt, "repairs") {
		p.repair()
		p.move("after a repair")
	}
	damaged := rapid.IntRange(0, 3).Draw(rt, "damages")
	for range damaged {
		execute(t, pool, rapid.SampledFrom(d.damages).Draw(rt, "damage"), rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(rt, "damaged"))
	}
	if p.damaged = damaged > 0; p.damaged {
		p.live = p.restarted()
	}
	p.move("after the damage")
	report, again := p.rebuild(true)
	if again {
		report, _ = p.rebuild(false)
	}
	ends := map[int32]int64{}
	for number, values := range p.log {
		ends[int32(number)] = int64(len(values))
	}
	p.onBoth(func(c *consumer) { c.consumeTo(t, ends) })
	p.same(&report, damaged)
	if d.ordered {
		return // if two events have the same version, the other event may be applied now
	}
	// Redelivered records must change nothing.
	execute(t, pool, `UPDATE projector_position SET next_offset = 0`)
	p.live = p.restarted()
	p.live.consumeTo(t, ends)
	p.same(&report, damaged)
}

// The method same compares the two databases.
func (p *pair) same(report *rebuild.Report, damages int) {
	got, want := p.d.state(p.t, p.live.pool), p.d.state(p.t, p.clean.pool)
	if damages > 0 {
		p.forget(got, report)
		p.forget(want, report)
	}
	if !maps.Equal(got, want) {
		p.rt.Fatalf("%d damages\ngot  %v\nwant %v\n%+v\ntopic %s", damages, got, want, report, strings.Join(slices.Concat(p.log...), "\n"))
	}
}

// forget removes rows that may differ. These are the rows that the rebuild did not change, and rows
// with events that the topic does not have. In a projection with an inbox, any row may have such an
// event.
func (p *pair) forget(state map[string]string, report *rebuild.Report) {
	left := leftAlone(report)
	for key := range state {
		account, _, _ := strings.Cut(key, ",")
		if slices.Contains(left, key) || p.given[account] || p.d.Memory() != nil && slices.Contains(slices.Collect(maps.Values(p.given)), true) {
			delete(state, key)
		}
	}
}

// The method restarted returns a new consumer of the damaged database, at the same positions.
func (p *pair) restarted() *consumer {
	c := newConsumer(*p.d, p.live.pool, p.log)
	c.at, c.letters = p.live.at, p.live.letters
	return c
}

// The method rebuild compares and swaps while consumers continue. If replays is true, dead letters
// may be replayed meanwhile. It returns the report, and whether the rebuild has to be run again
// because of the replays.
func (p *pair) rebuild(replays bool) (report rebuild.Report, again bool) {
	p.t.Helper()
	report, left, err := p.swapped(func(catchUps int) {
		locked := catchUps == locks
		if !locked {
			p.move("while it is brought there")
		}
		if replays && (!locked || p.d.Memory() == nil) && rapid.Bool().Draw(p.rt, "replayed meanwhile") {
			p.actOnSomeDeadLetter("replay") // not while the swap has locked the markers, because a replay also adds markers
		}
	})
	if errors.Is(err, rebuild.ErrUnclearMarkers) {
		return report, false // nothing was changed, because rows may have corrected events
	}
	if err != nil && (!replays || !errors.Is(err, rebuild.ErrRepairedSince)) {
		p.fatal(err)
	}
	return report, err != nil || left > 0
}

// The constant locks is the number of the catch-up during which the swap holds locks. Catch-ups are
// counted from 1.
const locks = 3

// The method swapped rebuilds the live database from the topic. After each catch-up, it passes the
// number of the catch-up to the function during. The result left counts the accounts or rows that
// the swap left unchanged, because repairs had changed them.
func (p *pair) swapped(during func(catchUps int)) (report rebuild.Report, left int64, err error) {
	t, pool := p.t, p.live.pool
	t.Helper()
	shadow, err := rebuild.OpenShadow(t.Context(), pool, p.d.Definition, 100, 0)
	if err != nil {
		p.fatal(err)
	}
	defer func() {
		if err := shadow.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	build, err := shadow.Build(t.Context(), rebuild.Config{
		Source: p.log, Formats: p.d.formats, FirstVersion: 1, Topic: topicName, TopicID: "id", Starts: p.log.starts(),
	})
	if err != nil {
		p.fatal(err)
	}
	catchUps := 0
	catchUp := func(ctx context.Context, positions []rebuild.TopicPosition) error {
		ends := map[int32]int64{}
		for _, at := range positions {
			ends[at.Partition] = at.Next
		}
		if err := build.Advance(ctx, ends, nil); err != nil {
			return err
		}
		catchUps++
		during(catchUps)
		return nil
	}
	report, err = shadow.Compare(t.Context(), rebuild.CompareOptions{Topic: topicName, List: 100}, catchUp)
	if err != nil {
		p.fatal(err)
	}
	done, err := shadow.Swap(t.Context(), rebuild.SwapOptions{Topic: topicName, Actor: "me", Remove: true}, catchUp)
	shadow.Moved(&report)
	return report, done.Left, err
}

// The method repair draws an action of an operator and carries it out in both databases.
func (p *pair) repair() {
	whats := []string{"replay", "replay", "correct"}
	if p.d.ordered {
		whats = append(whats, "skip", "unskip", "discard")
	}
	if p.d.Name() == readmodel.BalanceName {
		whats = append(whats, "open", "fetch")
	}
	account := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(p.rt, "repaired")
	version := rapid.Int64Range(1, 6).Draw(p.rt, "repaired version")
	switch what := rapid.SampledFrom(whats).Draw(p.rt, "repair"); what {
	case "replay", "correct", "discard":
		p.actOnSomeDeadLetter(what)
	case "skip", "unskip":
		if p.contested(account) {
			return
		}
		skip := repair.Skip{AccountID: account, Version: version, Actor: "me", Reason: "lost"}
		skip.NothingWaits = what == "skip" && rapid.Bool().Draw(p.rt, "nothing waits")
		p.onBoth(func(c *consumer) {
			var refused *repair.SkipRefused
			skipper := p.replayer(c).(*repair.Repair)
			_, err := skipper.Skip(p.t.Context(), skip)
			if what == "unskip" && err == nil {
				err = skipper.Unskip(p.t.Context(), skip)
			}
			if err != nil && !errors.As(err, &refused) {
				p.rt.Fatal(err)
			}
		})
	case "open":
		if p.contested(account) {
			return
		}
		p.onBoth(func(c *consumer) {
			opening := repair.Opening{AccountID: account}
			euro, _ := event.CurrencyByCode("EUR")
			opening.Version, opening.Currency, opening.Balance = version, euro, 100*version
			err := repair.New(p.repairs(c)).Openings(repair.OpenedBy{Actor: "me", Source: "ledger"}).Apply(p.t.Context(), []repair.Opening{opening}, nil)
			if err != nil {
				p.rt.Fatal(err)
			}
		})
	case "fetch":
		if p.contradicted(account, version) {
			return
		}
		p.given[account] = true
		p.onBoth(func(c *consumer) {
			r := p.record(&projection.Record{Message: event.Message{Value: []byte(credited(account, version))}})
			r.Action.Kind = readmodel.ActionFetch
			p.apply(c, r)
		})
	}
}

// The function credited returns an event whose amount is equal to its version.
func credited(account string, version int64) string {
	return fmt.Sprintf(`{"eventId":"%[1]s-%[2]d","eventType":"FundsCredited","accountId":%[1]q,"version":%[2]d,"occurredAt":"2026-01-01T00:00:00Z","data":{"amount":"%[2]d","currency":"EUR"}}`, account, version)
}

// actOnSomeDeadLetter draws a dead letter and carries out the given action on it in both databases.
func (p *pair) actOnSomeDeadLetter(what string) {
	if len(p.live.letters) == 0 {
		return
	}
	letters := slices.SortedFunc(slices.Values(p.live.letters), func(a, b projection.DeadLetter) int { // sorted, because partitions write at the same time
		return cmp.Or(cmp.Compare(a.Record.Partition, b.Record.Partition), cmp.Compare(a.Record.Offset, b.Record.Offset))
	})
	letter := &letters[rapid.IntRange(0, len(letters)-1).Draw(p.rt, "letter")]
	if what == "discard" && !p.single(letter) {
		return
	}
	// If the account's row is damaged, a replay decides which of two events with one version is
	// applied, or it applies a discarded event and so revokes the discard. The rebuild keeps that, as
	// any correction by a person.
	if p.damaged && p.d.ordered && (p.contested(letter.AccountID) || p.discarded[letter.Record.Ref()]) {
		return
	}
	if what == "discard" {
		p.discarded[letter.Record.Ref()] = true
	}
	p.onBoth(func(c *consumer) { p.actOnDeadLetter(c, what, letter) })
}

// The method single reports whether the topic has only one record with a dead letter's version. If
// one of two such records is discarded, the other one is applied when it is read again.
func (p *pair) single(letter *projection.DeadLetter) bool {
	return p.records(letter.AccountID, letter.Received) == 1
}

// The method records counts the records of a version.
func (p *pair) records(account string, version int64) int {
	return strings.Count(strings.Join(slices.Concat(p.log...), "\n"), fmt.Sprintf(`"accountId":%q,"version":%d,`, account, version))
}

// The method contested reports whether two records have the same version of an account. In this
// case, the time of a skip or an opening decides which of the two records is applied.
func (p *pair) contested(account string) bool {
	for version := range int64(7) {
		if p.records(account, version) > 1 {
			return true
		}
	}
	return false
}

// The method contradicted reports whether the topic has an event of this version that can be applied
// and is not the one that function credited returns. In this case, the time of a fetch decides which
// of the two is applied, and a rebuild applies that of the topic.
func (p *pair) contradicted(account string, version int64) bool {
	return slices.ContainsFunc(slices.Concat(p.log...), func(value string) bool {
		return strings.Contains(value, fmt.Sprintf(`"accountId":%q,"version":%d,`, account, version)) &&
			!strings.Contains(value, fmt.Sprintf(`"amount":"%d","currency":"EUR"`, version)) && !strings.Contains(value, `"amount":"none"`)
	})
}

func (p *pair) repairs(c *consumer) readmodel.RepairConfig {
	return readmodel.RepairConfig{Pool: c.pool, Formats: p.d.formats, FirstVersion: 1}
}

func (p *pair) replayer(c *consumer) readmodel.Replayer { return p.d.Replayer(p.repairs(c)) }

// The method record returns the record in the form in which a repair applies it.
func (p *pair) record(record *projection.Record) *readmodel.RepairRecord {
	format, err := p.d.formats.Resolve(p.t.Context(), record.Message)
	if err != nil {
		p.fatal(err)
	}
	r := &readmodel.RepairRecord{DecodedRecord: projection.DecodedRecord{Record: *record}}
	format.Decode(record.Message, &r.Decoded)
	e := &r.Decoded.Event
	r.Action = readmodel.Action{AccountID: e.AccountID, Version: &e.Version, Actor: "me", Reason: "mended"}
	return r
}

func (p *pair) apply(c *consumer, r *readmodel.RepairRecord) {
	if r.Decoded.Identity != event.Identified {
		return
	}
	if err := p.replayer(c).Apply(p.t.Context(), []*readmodel.RepairRecord{r}, func(readmodel.Step) {}); err != nil {
		p.fatal(err)
	}
}

// actOnDeadLetter replays a dead letter, either unchanged or corrected, or discards it.
func (p *pair) actOnDeadLetter(c *consumer, what string, letter *projection.DeadLetter) {
	record := letter.Record
	if what == "correct" {
		for _, wrong := range []string{`"none"`, `"7"`} {
			record.Value = []byte(strings.ReplaceAll(string(record.Value), wrong, `"2"`))
		}
	}
	r := p.record(&record)
	r.Reprocessed = what == "replay"
	place := record.Ref()
	r.Action.Kind, r.Action.Class = readmodel.ActionReplay, letter.Class
	r.Action.Topic, r.Action.Partition, r.Action.Offset = place.Topic, place.Partition, place.Offset
	p.given[r.Decoded.Event.AccountID] = p.given[r.Decoded.Event.AccountID] || what == "correct"
	r.Action.Altered = !bytes.Equal(record.Value, letter.Record.Value)
	if what != "discard" {
		p.apply(c, r)
		return
	}
	r.Action.Kind, r.Action.Projection, r.Action.Result = readmodel.ActionDiscard, p.d.Name(), readmodel.ResultDiscarded
	list := []readmodel.Discard{{Subject: readmodel.Subject{AccountID: letter.AccountID, Version: letter.Received}, Action: r.Action}}
	if _, err := p.replayer(c).Discard(p.t.Context(), list); err != nil {
		p.rt.Fatal(err)
	}
}
