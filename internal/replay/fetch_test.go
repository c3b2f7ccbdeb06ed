package replay_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"projector/internal/outbox"
	"projector/internal/replay"
	"projector/projection/event"
)

// answers is an outbox that has some versions of account a, and returns them two at a time when
// they are large.
type answers struct {
	has   map[int64]string // by version: the event
	asked []string
}

func (o *answers) Close() {}

func (o *answers) Ask(_ context.Context, wanted []outbox.Version, take func(event.Message) error) error {
	o.asked = append(o.asked, fmt.Sprint(wanted))
	for _, v := range wanted {
		if value, has := o.has[v.Number]; has {
			m := event.Message{Value: []byte(value), Headers: []event.Header{{Key: "h", Value: []byte(strings.Repeat("x", 17<<20))}}}
			if err := take(m); err != nil {
				return err
			}
		}
	}
	return nil
}

func TestAFetchAsksAgainForWhatWasTooLarge(t *testing.T) {
	o := &answers{has: map[int64]string{1: eventOf("a", 1), 2: eventOf("a", 2), 3: eventOf("a", 3), 5: eventOf("a", 5)}}
	in := &store{versions: map[string]int64{}}
	f := &replay.Fetch{Store: in, Outbox: o, Formats: formats(t), Actor: "me"}
	for v := range int64(5) {
		f.Missing = append(f.Missing, &replay.Missing{Version: outbox.Version{AccountID: "a", Number: v + 1}})
	}
	if err := f.Plan(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	equal(t, strings.Join(o.asked, " "), "[{a 1} {a 2} {a 3} {a 4} {a 5}] [{a 3} {a 4} {a 5}] [{a 4}]")
	outcomes := func(done bool) (text string) {
		for _, m := range f.Missing {
			text += m.Outcome(done) + " "
		}
		return text
	}
	equal(t, outcomes(false), "will_apply will_apply will_apply not_found waiting ")
	in.fails = errors.New("the database is away")
	if err := f.Apply(t.Context(), nil); err == nil {
		t.Error("a failure was not returned")
	}
	equal(t, outcomes(true), "applied not_done not_done not_found not_done ")
	if n := f.Failed(); n != 4 {
		t.Errorf("%d failed", n)
	}
	in.fails = nil
	if err := f.Apply(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	equal(t, outcomes(true), "duplicate applied applied not_found waiting ")
}
