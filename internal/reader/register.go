package reader

import (
	"container/list"
	"errors"
	"sync"
	"sync/atomic"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
)

var (
	errFull   = errors.New("too many readers wait")
	errClosed = errors.New("this instance is stopping")
)

// outcome is what became of a waiter.
type outcome int

const (
	reached     outcome = iota // the account has the version
	behind                     // it has not: the time is over, or it waits for a missing event
	absent                     // the time is over and the account has no row
	unreachable                // the database could not be asked when the time was over
	stopping
)

// answer is what a waiter is told. The account is set when it is reached or behind.
type answer struct {
	outcome outcome
	account readmodel.Current
}

// waiter is one who waits for an account to have a row and a version.
type waiter struct {
	account *account
	version int64
	// since is the last question that was put before the waiter came, or before its time was
	// over: what is found out by a later one is news to it.
	since  uint64
	over   bool        // its time: what is found out next is its answer
	at     int         // in account.waiters
	answer chan answer // takes one
}

// account is one that somebody waits for.
type account struct {
	id      string
	waiters []*waiter
	queue   *list.List    // it stands in: Register.next or Register.rest
	place   *list.Element // where
}

// register holds who waits for what, and decides what each is told. It asks nobody and
// knows no clock: its owner puts the questions it hands out to the database.
//
//	add ──▶ next ──take──▶ rest ──take, a few at a time──▶ rest …
//	          ▲             │
//	          └── changed, the waiter's time is over, the database could not be asked
//
// Each waiter is asked for twice: when it has come, and when its time is over. In between it
// is told by what this instance has written, or when its account's turn comes again.
type register struct {
	limit   int
	waiting atomic.Int64

	mu       sync.Mutex
	asked    uint64 // questions put
	accounts map[string]*account
	next     *list.List // of *account: those to ask for at once
	rest     *list.List // the others, in the order of their last question
	closed   bool
	somebody chan struct{} // has something in it when somebody waits, and perhaps when nobody does
}

var _ readmodel.Readers = (*register)(nil)

func newRegister(limit int) *register {
	return &register{
		limit: limit, accounts: map[string]*account{}, next: list.New(), rest: list.New(), somebody: make(chan struct{}, 1),
	}
}

// Waiting implements readmodel.Readers.
func (r *register) Waiting() bool { return r.waiting.Load() > 0 }

// add registers a waiter, which is to be removed when it is done. over: it has no time to wait.
func (r *register) add(id string, version int64, over bool) (*waiter, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return nil, errClosed
	case r.waiting.Load() >= int64(r.limit):
		return nil, errFull
	}
	// Before the question is put: whoever writes from here on finds somebody waiting.
	r.waiting.Add(1)
	a := r.accounts[id]
	if a == nil {
		a = &account{id: id}
		r.accounts[id] = a
	}
	w := &waiter{account: a, version: version, since: r.asked, over: over, at: len(a.waiters), answer: make(chan answer, 1)}
	a.waiters = append(a.waiters, w)
	r.move(a, r.next)
	select {
	case r.somebody <- struct{}{}:
	default:
	}
	return w, nil
}

// remove takes a waiter out, answered or not.
func (r *register) remove(w *waiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.at >= 0 {
		r.drop(w)
	}
}

// expire says that the waiter's time is over.
func (r *register) expire(w *waiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.at < 0 {
		return
	}
	w.over, w.since = true, r.asked
	r.move(w.account, r.next)
}

func (r *register) drop(w *waiter) {
	a, last := w.account, len(w.account.waiters)-1
	a.waiters[w.at] = a.waiters[last]
	a.waiters[w.at].at = w.at
	a.waiters[last] = nil
	a.waiters = a.waiters[:last]
	w.at = -1
	r.waiting.Add(-1)
	if last == 0 {
		a.queue.Remove(a.place)
		delete(r.accounts, a.id)
	}
}

func (r *register) move(a *account, to *list.List) {
	if a.queue == to && to == r.next {
		return
	}
	if a.queue != nil {
		a.queue.Remove(a.place)
	}
	a.queue, a.place = to, to.PushBack(a)
}

// question is a question to the database: how these accounts stand.
type question struct {
	number uint64
	ids    []string
	crowd  bool // more wait than are asked for
}

// take hands out the next question: all accounts that are to be asked for at once, and others
// up to size, but at least so many of them.
func (r *register) take(size, others int) question {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	q := question{number: r.asked}
	for range min(max(others, size-r.next.Len()), r.rest.Len()) {
		q.ids = append(q.ids, r.asking(r.rest.Front()))
	}
	for r.next.Len() > 0 {
		q.ids = append(q.ids, r.asking(r.next.Front()))
	}
	q.crowd = len(q.ids) < len(r.accounts)
	return q
}

func (r *register) asking(e *list.Element) string {
	a, _ := e.Value.(*account)
	r.move(a, r.rest)
	return a.id
}

// found takes in the answer to a question.
func (r *register) found(q question, current []readmodel.Current) {
	known := make(map[string]*readmodel.Current, len(current))
	for i := range current {
		known[current[i].AccountID] = &current[i]
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range q.ids {
		if a := r.accounts[id]; a != nil {
			r.decide(a, known[id], q.number)
		}
	}
}

// failed says that a question could not be put. Whose time is over is told so; the others are
// asked for again.
func (r *register) failed(q question) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range q.ids {
		if a := r.accounts[id]; a != nil {
			r.move(a, r.next)
		}
	}
	for e := r.next.Front(); e != nil; {
		a, _ := e.Value.(*account)
		e = e.Next() // before a goes, with its last waiter
		r.tell(a, func(w *waiter) (answer, bool) { return answer{outcome: unreachable}, w.over })
	}
}

// decide tells those of an account's waiters who have waited long enough, by what question
// has found out; nil: nothing is known of the account.
func (r *register) decide(a *account, now *readmodel.Current, question uint64) {
	r.tell(a, func(w *waiter) (answer, bool) {
		switch {
		case now != nil && now.Exists && now.Version >= w.version:
			return answer{reached, *now}, true
		case question <= w.since: // may be from before the waiter came
			return answer{}, false
		case now != nil && now.WaitingFor != nil: // that event, or one behind it
			return answer{behind, *now}, true
		case !w.over:
			return answer{}, false
		case now != nil:
			return answer{behind, *now}, true
		default:
			return answer{outcome: absent}, true
		}
	})
}

// tell answers those of an account's waiters to whom say has something to say.
func (r *register) tell(a *account, say func(*waiter) (answer, bool)) {
	for i := len(a.waiters) - 1; i >= 0; i-- { // drop moves one that was asked already to i
		w := a.waiters[i]
		if told, done := say(w); done {
			r.drop(w)
			w.answer <- told
		}
	}
}

// Written implements readmodel.Readers.
func (r *register) Written(id string, now *projection.Account) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.accounts[id]; a != nil {
		r.decide(a, current(a.id, now), 0)
	}
}

// current is an account of which nothing is parked, as the database has it.
func current(id string, now *projection.Account) *readmodel.Current {
	status := "open"
	if now.Closed {
		status = "closed"
	}
	return &readmodel.Current{
		AccountID: id, Exists: true, Version: now.Version, Status: status,
		Balance: event.FormatAmount(now.Balance, now.Currency), Currency: now.Currency.Code(),
	}
}

// Changed implements readmodel.Readers.
func (r *register) Changed(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.accounts[id]; a != nil {
		r.move(a, r.next)
	}
}

// close tells everybody that the instance stops, and everybody who comes.
func (r *register) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, a := range r.accounts {
		r.tell(a, func(*waiter) (answer, bool) { return answer{outcome: stopping}, true })
	}
}
