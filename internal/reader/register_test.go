package reader

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
)

// at is an account with a balance row, which waits for a version unless that is 0.
func at(id string, version, waitingFor int64) readmodel.Current {
	c := readmodel.Current{AccountID: id, Exists: true, Version: version}
	if waitingFor > 0 {
		c.WaitingFor = &waitingFor
	}
	return c
}

func mustAdd(t interface{ Fatal(...any) }, r *register, id string, version int64, over bool) *waiter {
	w, err := r.add(id, version, over)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// told is what a waiter has been told, in a line.
func told(w *waiter) string {
	select {
	case a := <-w.answer:
		return fmt.Sprintf("%s %d", [...]string{"reached", "behind", "absent", "unreachable", "stopping"}[a.outcome], a.account.Version)
	default:
		return "nothing"
	}
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestWhatIsWrittenIsToldWithoutAQuestion(t *testing.T) {
	r := newRegister(10)
	eur, _ := event.CurrencyByCode("EUR")
	if r.Waiting() {
		t.Error("somebody waits in an empty register")
	}
	sooner, later := mustAdd(t, r, "a", 2, false), mustAdd(t, r, "a", 3, false)
	other := mustAdd(t, r, "b", 1, false)
	if !r.Waiting() {
		t.Error("nobody waits")
	}
	r.Written("a", &projection.Account{Version: 2, Balance: -5, Currency: eur, Closed: true})
	r.Written("nobody", &projection.Account{Version: 2})
	select {
	case got := <-sooner.answer:
		want := readmodel.Current{AccountID: "a", Exists: true, Version: 2, Balance: "-0.05", Currency: "EUR", Status: "closed"}
		if got.outcome != reached || got.account != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	default:
		t.Error("the version that was written is not told")
	}
	expect(t, "version 3", told(later), "nothing")
	expect(t, "another account", told(other), "nothing")
	expect(t, "asked for", fmt.Sprint(r.take(0, 0).ids), "[a b]")
}

func TestWhatAQuestionTells(t *testing.T) {
	for name, c := range map[string]struct {
		version          int64
		over             bool
		found            []readmodel.Current
		want, whenIsOver string
	}{
		"reached":              {3, false, []readmodel.Current{at("a", 3, 0)}, "reached 3", ""},
		"passed, and stale":    {3, false, []readmodel.Current{at("a", 4, 5)}, "reached 4", ""},
		"any version":          {0, true, []readmodel.Current{at("a", 4, 5)}, "reached 4", ""},
		"behind":               {3, false, []readmodel.Current{at("a", 2, 0)}, "nothing", "behind 2"},
		"behind, with no time": {3, true, []readmodel.Current{at("a", 2, 0)}, "behind 2", ""},
		"behind a hole":        {3, false, []readmodel.Current{at("a", 1, 2)}, "behind 1", ""},
		"the hole itself":      {2, false, []readmodel.Current{at("a", 1, 2)}, "behind 1", ""},
		"no row":               {3, false, nil, "nothing", "absent 0"},
		"no row, any version":  {0, false, nil, "nothing", "absent 0"},
		"no row and a hole":    {0, true, []readmodel.Current{{AccountID: "a", WaitingFor: new(int64(1))}}, "behind 0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegister(10)
			w := mustAdd(t, r, "a", c.version, c.over)
			r.found(r.take(0, 0), c.found)
			expect(t, "told", told(w), c.want)
			if c.whenIsOver == "" {
				return
			}
			expect(t, "asked again at once", fmt.Sprint(r.take(0, 0).ids), "[]")
			r.expire(w)
			expect(t, "told before it is asked for", told(w), "nothing")
			r.found(r.take(0, 0), c.found)
			expect(t, "told when the time is over", told(w), c.whenIsOver)
		})
	}
}

// TestAQuestionFromBefore: what was asked before a waiter came may be older than what it
// knows; only a version that is reached counts.
func TestAQuestionFromBefore(t *testing.T) {
	r := newRegister(10)
	mustAdd(t, r, "a", 9, false)
	q := r.take(0, 0)
	behind, there := mustAdd(t, r, "a", 5, true), mustAdd(t, r, "a", 4, true)
	r.found(q, []readmodel.Current{at("a", 4, 0)})
	expect(t, "behind", told(behind), "nothing")
	expect(t, "there", told(there), "reached 4")
	r.found(r.take(0, 0), []readmodel.Current{at("a", 5, 0)})
	expect(t, "asked anew", told(behind), "reached 5")
}

// TestAFailedQuestion: who has time left is asked for again.
func TestAFailedQuestion(t *testing.T) {
	r := newRegister(10)
	patient, hurried := mustAdd(t, r, "a", 1, false), mustAdd(t, r, "b", 1, true)
	q := r.take(0, 0)
	late := mustAdd(t, r, "c", 1, true)
	r.failed(q)
	expect(t, "patient", told(patient), "nothing")
	expect(t, "hurried", told(hurried), "unreachable 0")
	expect(t, "came meanwhile", told(late), "unreachable 0")
	q = r.take(0, 0)
	expect(t, "asked for again", fmt.Sprint(q.ids), "[a]")
	r.expire(patient)
	r.failed(q)
	expect(t, "patient at last", told(patient), "unreachable 0")
}

func TestTooMany(t *testing.T) {
	r := newRegister(2)
	first := mustAdd(t, r, "a", 1, false)
	mustAdd(t, r, "a", 1, false)
	if _, err := r.add("b", 1, false); !errors.Is(err, errFull) {
		t.Errorf("the third: %v", err)
	}
	r.remove(first)
	r.remove(first) // as when it was answered too
	last := mustAdd(t, r, "b", 1, false)
	r.close()
	expect(t, "when it stops", told(last), "stopping 0")
	if _, err := r.add("b", 1, false); !errors.Is(err, errClosed) || r.Waiting() {
		t.Errorf("after that: %v; somebody waits: %t", err, r.Waiting())
	}
}

// TestTurns: those who wait on are asked for in turn, a few at a time, and what has changed at
// once.
func TestTurns(t *testing.T) {
	r := newRegister(10)
	for _, id := range []string{"a", "b", "c", "d", "b"} {
		mustAdd(t, r, id, 9, false)
	}
	for _, want := range []string{"[a b c d] false", "[a b c] true", "[d a b] true"} {
		q := r.take(3, 0)
		expect(t, "asked for, of more", fmt.Sprint(q.ids, q.crowd), want)
		r.found(q, nil)
	}
	r.Changed("a")
	r.Changed("nobody")
	expect(t, "asked for", fmt.Sprint(r.take(0, 1).ids), "[c a]")
}

// TestRegister draws what happens to a register and to the accounts. Nobody is told what is
// not so, or was not so any more when it came; everybody is told something in the end.
func TestRegister(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const limit = 8
		r := newRegister(limit)
		ids := []string{"a", "b", "c"}
		world := map[string]int64{}            // versions; 0: no row
		came := map[*waiter]map[string]int64{} // the world when a waiter came, or its time was over
		var waiting []*waiter
		var asked *question
		var seen []readmodel.Current // by the question
		account := func() string { return rapid.SampledFrom(ids).Draw(rt, "account") }
		copied := func() map[string]int64 {
			c := map[string]int64{}
			for id, v := range world {
				c[id] = v
			}
			return c
		}
		answered := func(w *waiter) bool {
			select {
			case a := <-w.answer:
				id := w.account.id
				switch ok := a.account.AccountID == id || a.outcome == absent || a.outcome == unreachable && w.over; {
				case !ok, a.account.Version > world[id],
					a.outcome == reached && (a.account.Version < w.version || a.account.Version == 0),
					a.outcome == behind && (a.account.Version >= w.version || a.account.Version < came[w][id] || !w.over),
					a.outcome == absent && (came[w][id] > 0 || !w.over):
					rt.Fatalf("waiter for %s %d (over: %t, came at %v) is told %+v; now %v", id, w.version, w.over, came[w], a, world)
				}
				return true
			default:
				return false
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"come": func(*rapid.T) {
				w, err := r.add(account(), rapid.Int64Range(0, 6).Draw(rt, "version"), rapid.Bool().Draw(rt, "over"))
				if (err != nil) != (len(waiting) == limit) {
					rt.Fatalf("%d wait: %v", len(waiting), err)
				}
				if err == nil {
					waiting, came[w] = append(waiting, w), copied()
				}
			},
			"go": func(*rapid.T) {
				if len(waiting) > 0 {
					r.remove(waiting[0])
					waiting = waiting[1:]
				}
			},
			"time is over": func(*rapid.T) {
				if len(waiting) > 0 && !waiting[0].over {
					r.expire(waiting[0])
					came[waiting[0]] = copied()
				}
			},
			"written here": func(*rapid.T) {
				id := account()
				world[id]++
				r.Written(id, &projection.Account{Version: world[id]})
			},
			"written elsewhere": func(*rapid.T) { world[account()]++ },
			"ask": func(*rapid.T) {
				if asked != nil {
					return
				}
				q := r.take(0, 1)
				asked, seen = &q, nil
				for _, id := range q.ids {
					if world[id] > 0 {
						seen = append(seen, at(id, world[id], 0))
					}
				}
			},
			"found": func(*rapid.T) {
				if asked != nil {
					r.found(*asked, seen)
					asked = nil
				}
			},
			"failed": func(*rapid.T) {
				if asked != nil {
					r.failed(*asked)
					asked = nil
				}
			},
			"": func(*rapid.T) {
				waiting = slices.DeleteFunc(waiting, answered)
				if got := int(r.waiting.Load()); got != len(waiting) || r.next.Len()+r.rest.Len() != len(r.accounts) {
					rt.Fatalf("%d wait, of %d; %d and %d of %d accounts in line", got, len(waiting), r.next.Len(), r.rest.Len(), len(r.accounts))
				}
			},
		})
		if asked != nil {
			r.failed(*asked)
		}
		for _, w := range waiting {
			if !w.over {
				r.expire(w)
			}
		}
		r.found(r.take(0, 0), []readmodel.Current{at("a", 9, 0)})
		if left := slices.DeleteFunc(waiting, func(w *waiter) bool { return !strings.HasPrefix(told(w), "nothing") }); len(left) > 0 || r.Waiting() {
			rt.Fatalf("%d are told nothing", len(left))
		}
	})
}
