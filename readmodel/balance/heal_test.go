package balance_test

import (
	"context"
	"fmt"
	"testing"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel/balance"
	"projector/readmodel/readmodeltest"
)

// tally counts the parked events that are read.
type tally struct {
	event.Resolver
	n int
}

func (c *tally) Resolve(ctx context.Context, m event.Message) (event.Format, error) {
	c.n++
	return c.Resolver.Resolve(ctx, m)
}

// In TestManyGapsOfOneAccount, every second event is late. After each late event, the event after
// it can be applied. The fold must not read all parked events of the account for this.
func TestManyGapsOfOneAccount(t *testing.T) {
	const gaps = 500
	read := &tally{}
	pool := openPool(t)
	w := newWorkerWith(t, pool, partition, func(cfg *balance.Config) {
		cfg.ParkLimit = gaps
		read.Resolver = cfg.Formats
		cfg.Formats = read
	})
	w.MustClaim("me", projection.NoOffset)
	var early, late []string
	for v := 1; v <= 2*gaps; v += 2 {
		late = append(late, credit("a", v, "1", "EUR"))
		early = append(early, credit("a", v+1, "1", "EUR"))
	}
	w.MustFold(early...)
	w.MustFlush()
	w.MustFold(late...)
	w.MustFlush()
	expect(t, current(t, pool, "a"), fmt.Sprintf("EUR %d.00 %d open a-%d false -", 2*gaps, 2*gaps, 2*gaps))
	if read.n > 20*gaps {
		t.Errorf("read %d parked events to apply %d", read.n, gaps)
	}
}

// An event is parked for an account. With another mapping, the same record may be an event of another
// account. It must then not be applied to the account for which it was parked.
func TestAParkedEventOfAnotherAccountIsNotApplied(t *testing.T) {
	pool, before := startWorker(t)
	parked := `{"eventId":"x","eventType":"FundsCredited","accountId":"a","iban":"b","version":2,"occurredAt":"2026-01-01T00:00:00Z",` +
		`"data":{"amount":"5","currency":"EUR"}}`
	before.MustFold(parked)
	before.MustFlush()

	mapped, err := event.New(event.FormatJSON, event.Options{FirstVersion: 1, Mapping: event.Mapping{
		Fields: map[event.Field]event.FieldPath{event.FieldAccountID: {Path: []string{"iban"}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorkerWith(t, pool, partition, func(cfg *balance.Config) { cfg.Formats = event.Always(mapped) })
	w.Format = mapped
	w.MustClaim("with another mapping", before.Next)
	w.MustFold(`{"eventId":"y","eventType":"FundsCredited","iban":"a","version":1,"occurredAt":"2026-01-01T00:00:00Z",` +
		`"data":{"amount":"1","currency":"EUR"}}`)
	changes := w.MustFlush()
	expect(t, current(t, pool, "a"), "EUR 1.00 1 open y true 2")
	if letters := changes.DeadLetters; changes.Healed != 0 || len(letters) != 1 || letters[0].Class != event.MalformedPayload {
		t.Errorf("healed %d, dead letters %+v", changes.Healed, letters)
	}
}

// Two events of one version come in different partitions. The first cannot be applied, and the
// worker of the second does not know that the first is parked. The second event still replaces the
// first.
func TestAParkedEventOfAnotherPartitionGivesWay(t *testing.T) {
	pool, w := startWorker(t)
	other := newWorker(t, pool, readmodeltest.InPartition(1))
	other.MustClaim("other", projection.NoOffset)
	other.MustFold(credit("a", 1, "1", "EUR"))
	other.MustFlush() // the account is now in this worker's memory, without parked events
	w.MustFold(credit("a", 3, "4.005", "EUR"))
	w.MustFlush()
	other.MustFold(credit("a", 3, "4", "EUR"))
	other.MustFlush()
	other.MustFold(credit("a", 2, "2", "EUR"))
	other.MustFlush()
	expect(t, current(t, pool, "a"), "EUR 7.00 3 open a-3 false -")
}
