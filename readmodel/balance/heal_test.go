package balance_test

import (
	"context"
	"fmt"
	"testing"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel/balance"
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
