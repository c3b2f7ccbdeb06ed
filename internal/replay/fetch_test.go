package replay_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"projector/dlq"
	"projector/internal/outbox"
	"projector/internal/replay"
	"projector/projection/event"
	"projector/readmodel"
)

// The type answers is an outbox that has some versions of an account. Its events are so large that
// two of them are too large for one answer.
type answers struct {
	has   map[int64]string // events by version
	asked []string
}

func (o *answers) Close() {}

func (o *answers) Ask(_ context.Context, wanted []outbox.Version, receive outbox.Receive) error {
	o.asked = append(o.asked, fmt.Sprint(wanted))
	for _, v := range wanted {
		if value, has := o.has[v.Number]; has {
			m := event.Message{Value: []byte(value), Headers: []event.Header{{Key: "h", Value: []byte(strings.Repeat("x", 17<<20))}}}
			if err := receive(m, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

func TestAFetchAsksAgainForWhatWasTooLarge(t *testing.T) {
	o := &answers{has: map[int64]string{1: eventOf("a", 1), 2: eventOf("a", 2), 3: eventOf("a", 3), 5: eventOf("a", 5)}}
	in := &store{versions: map[string]int64{}}
	f := &replay.Fetch{Store: in, Outbox: o, Formats: formats(t), By: readmodel.Action{Actor: "me"}}
	for v := range int64(5) {
		f.Missing = append(f.Missing, &replay.Missing{Version: outbox.Version{AccountID: "a", Number: v + 1}})
	}
	if err := f.Plan(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	equal(t, strings.Join(o.asked, " "),
		"[{a 1} {a 2} {a 3} {a 4} {a 5}] [{a 1}] [{a 2} {a 3} {a 4} {a 5}] [{a 2}] [{a 3} {a 4} {a 5}] [{a 3}] [{a 4} {a 5}]")
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

// contradictory is an outbox with two different events of each version.
type contradictory struct{ answers }

func (o *contradictory) Ask(_ context.Context, wanted []outbox.Version, receive outbox.Receive) error {
	for _, v := range wanted {
		one := eventOf(v.AccountID, int(v.Number))
		for _, value := range []string{one, strings.Replace(one, "1.00", "9.00", 1)} {
			if err := receive(event.Message{Value: []byte(value)}, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

func TestAFetchSaysWhatTheOutboxHasTwice(t *testing.T) {
	in := &store{versions: map[string]int64{}}
	f := &replay.Fetch{Store: in, Outbox: &contradictory{}, Formats: formats(t), Missing: []*replay.Missing{{Version: outbox.Version{AccountID: "a", Number: 1}}}}
	if err := f.Plan(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if m := f.Missing[0]; m.Plan != replay.PlanNotFound || m.Reason() != outbox.Contradiction || f.Refused != 2 {
		t.Errorf("%s because %q, %d refused", m.Plan, m.Reason(), f.Refused)
	}
}

// TestADigestIsOfTheWholeMessage shows that the digest changes with the key, the value and the
// headers. An approval must cover the whole message, because in some formats the headers or the key
// are part of the event.
func TestADigestIsOfTheWholeMessage(t *testing.T) {
	header := func(key, value string) event.Header { return event.Header{Key: key, Value: []byte(value)} }
	seen := map[string]string{}
	for name, m := range map[string]event.Message{
		"an event":                {Key: []byte("a"), Value: []byte("v"), Headers: []event.Header{header("type", "credit"), header("x", "1")}},
		"another key":             {Key: []byte("b"), Value: []byte("v"), Headers: []event.Header{header("type", "credit"), header("x", "1")}},
		"another value":           {Key: []byte("a"), Value: []byte("w"), Headers: []event.Header{header("type", "credit"), header("x", "1")}},
		"another header":          {Key: []byte("a"), Value: []byte("v"), Headers: []event.Header{header("type", "debit"), header("x", "1")}},
		"another order":           {Key: []byte("a"), Value: []byte("v"), Headers: []event.Header{header("x", "1"), header("type", "credit")}},
		"another name":            {Key: []byte("a"), Value: []byte("v"), Headers: []event.Header{header("typec", "redit"), header("x", "1")}},
		"no key":                  {Value: []byte("v"), Headers: []event.Header{header("type", "credit"), header("x", "1")}},
		"the key is in the value": {Value: []byte("av"), Headers: []event.Header{header("type", "credit"), header("x", "1")}},
	} {
		record := &readmodel.RepairRecord{}
		record.Record.Message = m
		digest := (&replay.Missing{Event: replay.Event{Record: record}}).Digest()
		letter := &replay.DeadLetter{Entry: dlq.Entry{Key: m.Key, Value: m.Value, Headers: m.Headers}}
		if replayed := (&replay.Item{DeadLetter: letter}).Digest(); replayed != digest {
			t.Errorf("%s: a replay has another digest than a fetch", name)
		}
		if other, twice := seen[digest]; twice {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[digest] = name
	}
}
