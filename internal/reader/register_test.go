package reader

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"projector/readmodel/accountdb"
)

// at returns an account with a balance row. The account waits for the version waitingFor, unless
// this is 0.
func at(id string, version, waitingFor int64) accountdb.Current {
	c := accountdb.Current{AccountID: id, Exists: true, Version: version}
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

// answerOf returns the answer to a waiter as one line of text.
func answerOf(w *waiter) string {
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

func TestWhatAQueryAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		version          int64
		over             bool
		found            []accountdb.Current
		want, whenIsOver string
	}{
		"reached":              {3, false, []accountdb.Current{at("a", 3, 0)}, "reached 3", ""},
		"passed, and stale":    {3, false, []accountdb.Current{at("a", 4, 5)}, "reached 4", ""},
		"any version":          {0, true, []accountdb.Current{at("a", 4, 5)}, "reached 4", ""},
		"behind":               {3, false, []accountdb.Current{at("a", 2, 0)}, "nothing", "behind 2"},
		"behind, with no time": {3, true, []accountdb.Current{at("a", 2, 0)}, "behind 2", ""},
		"behind a hole":        {3, false, []accountdb.Current{at("a", 1, 2)}, "behind 1", ""},
		"the hole itself":      {2, false, []accountdb.Current{at("a", 1, 2)}, "behind 1", ""},
		"no row":               {3, false, nil, "nothing", "absent 0"},
		"no row, any version":  {0, false, nil, "nothing", "absent 0"},
		"no row and a hole":    {0, true, []accountdb.Current{{AccountID: "a", WaitingFor: new(int64(1))}}, "behind 0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegister(10)
			w := mustAdd(t, r, "a", c.version, c.over)
			answered(r, false, c.found...)
			expect(t, "answer", answerOf(w), c.want)
			if c.whenIsOver == "" {
				return
			}
			expect(t, "due again", due(r), "[]")
			r.expire(w)
			expect(t, "before the query", answerOf(w), "nothing")
			answered(r, false, c.found...)
			expect(t, "when the time is over", answerOf(w), c.whenIsOver)
		})
	}
}

// The function answered begins a query and passes the result current to the register.
func answered(r *register, all bool, current ...accountdb.Current) {
	number, ids := r.query(all)
	r.found(number, ids, current)
}

// The function due lists the accounts that query(false) would return next.
func due(r *register) string { return fmt.Sprint(slices.Sorted(maps.Keys(r.due))) }

// TestAnOlderQuery shows how a waiter is answered from a query that was sent before the waiter was
// added. Such a query may return old data. Its result counts only if the account has already
// reached the waiter's version.
func TestAnOlderQuery(t *testing.T) {
	r := newRegister(10)
	mustAdd(t, r, "a", 9, false)
	number, ids := r.query(true)
	behind, there := mustAdd(t, r, "a", 5, true), mustAdd(t, r, "a", 4, true)
	r.found(number, ids, []accountdb.Current{at("a", 4, 0)})
	expect(t, "behind", answerOf(behind), "nothing")
	expect(t, "there", answerOf(there), "reached 4")
	expect(t, "due", due(r), "[a]")
	answered(r, false, at("a", 5, 0))
	expect(t, "queried again", answerOf(behind), "reached 5")
}

// TestAFailedQuery shows that a waiter whose time is not over waits for the next query after a
// failed one.
func TestAFailedQuery(t *testing.T) {
	r := newRegister(10)
	patient, hurried := mustAdd(t, r, "a", 1, false), mustAdd(t, r, "b", 1, true)
	r.query(false)
	late := mustAdd(t, r, "c", 1, true)
	r.failed()
	expect(t, "patient", answerOf(patient), "nothing")
	expect(t, "hurried", answerOf(hurried), "unreachable 0")
	expect(t, "came meanwhile", answerOf(late), "unreachable 0")
	_, ids := r.query(true)
	expect(t, "queried again", fmt.Sprint(ids), "[a]")
	r.expire(patient)
	r.failed()
	expect(t, "patient at last", answerOf(patient), "unreachable 0")
}

func TestTooMany(t *testing.T) {
	r := newRegister(2)
	first := mustAdd(t, r, "a", 1, false)
	mustAdd(t, r, "a", 1, false)
	if _, err := r.add("b", 1, false); !errors.Is(err, errFull) {
		t.Errorf("the third: %v", err)
	}
	r.remove(first)
	r.remove(first) // a second call, because the handler also calls remove after an answer
	last := mustAdd(t, r, "b", 1, false)
	r.close()
	expect(t, "when it stops", answerOf(last), "stopping 0")
	if _, err := r.add("b", 1, false); !errors.Is(err, errClosed) || r.count() > 0 {
		t.Errorf("after that: %v; %d wait", err, r.count())
	}
}

// TestDue shows which accounts are due between two queries for all waiters. The due accounts have a
// new waiter, have a waiter whose time is over, or were written.
func TestDue(t *testing.T) {
	r := newRegister(10)
	for _, id := range []string{"a", "b", "c", "b"} {
		mustAdd(t, r, id, 9, false)
	}
	expect(t, "at first", due(r), "[a b c]")
	answered(r, true)
	expect(t, "later", due(r), "[]")
	w := mustAdd(t, r, "b", 9, false)
	gone := mustAdd(t, r, "d", 9, false)
	expect(t, "who came", due(r), "[b d]")
	r.remove(gone)
	answered(r, false)
	r.changed(slices.Values([]string{"c", "nobody", "c"}))
	expect(t, "what changed", due(r), "[c]")
	answered(r, false)
	r.expire(w)
	expect(t, "whose time is over", due(r), "[b]")
	_, ids := r.query(true)
	slices.Sort(ids)
	expect(t, "all", fmt.Sprint(ids), "[a b c]")
}

// TestRegister runs random operations on a register. Every waiter that is not removed must receive
// an answer. The answer must have been correct at some time between the waiter's arrival and the
// answer.
func TestRegister(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const limit = 8
		r := newRegister(limit)
		ids := []string{"a", "b", "c"}
		world := map[string]int64{} // current version of each account; 0 if it has no row
		// For each waiter, the map came has the versions of all accounts when the waiter was added,
		// or when its time was over.
		came := map[*waiter]map[string]int64{}
		var waiting []*waiter
		type query struct {
			number uint64
			ids    []string
		}
		var sent *query
		var seen []accountdb.Current // result of the sent query
		account := func() string { return rapid.SampledFrom(ids).Draw(rt, "account") }
		copied := func() map[string]int64 {
			c := map[string]int64{}
			for id, v := range world {
				c[id] = v
			}
			return c
		}
		isAnswered := func(w *waiter) bool {
			select {
			case a := <-w.answer:
				id := w.id
				switch ok := a.account.AccountID == id || a.outcome == absent || a.outcome == unreachable && w.over; {
				case !ok, a.account.Version > world[id],
					a.outcome == reached && (a.account.Version < w.version || a.account.Version == 0),
					a.outcome == behind && (a.account.Version >= w.version || a.account.Version < came[w][id] || !w.over),
					a.outcome == absent && (came[w][id] > 0 || !w.over):
					rt.Fatalf("waiter for %s %d (over: %t, came at %v) is answered %+v; now %v", id, w.version, w.over, came[w], a, world)
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
			"written": func(*rapid.T) { world[account()]++ },
			"query": func(*rapid.T) {
				if sent != nil {
					return
				}
				number, ids := r.query(rapid.Bool().Draw(rt, "all"))
				sent, seen = &query{number, ids}, nil
				for _, id := range ids {
					if world[id] > 0 {
						seen = append(seen, at(id, world[id], 0))
					}
				}
			},
			"found": func(*rapid.T) {
				if sent != nil {
					r.found(sent.number, sent.ids, seen)
					sent = nil
				}
			},
			"failed": func(*rapid.T) {
				if sent != nil {
					r.failed()
					r.query(true) // this query fails too
					r.failed()
					sent = nil
				}
			},
			"": func(*rapid.T) {
				waiting = slices.DeleteFunc(waiting, isAnswered)
				due := 0
				for _, w := range waiting {
					if _, is := r.due[w.id]; is {
						due++
					} else if sent == nil && w.over {
						rt.Fatalf("the waiter for %s %d is not queried for although its time is over", w.id, w.version)
					}
				}
				if r.count() != len(waiting) || due < len(r.due) || len(r.accounts) > len(waiting) {
					rt.Fatalf("%d wait, of %d, for %d accounts; %d of %d are due", r.count(), len(waiting), len(r.accounts), due, len(r.due))
				}
			},
		})
		for _, w := range waiting {
			if !w.over {
				r.expire(w)
			}
		}
		answered(r, true, at("a", 9, 0))
		if left := slices.DeleteFunc(waiting, func(w *waiter) bool { return !strings.HasPrefix(answerOf(w), "nothing") }); len(left) > 0 || r.count() > 0 {
			rt.Fatalf("%d have no answer", len(left))
		}
	})
}
