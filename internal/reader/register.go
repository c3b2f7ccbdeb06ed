package reader

import (
	"errors"
	"iter"
	"sync"

	"projector/readmodel/accountdb"
)

var (
	errFull   = errors.New("too many readers wait")
	errClosed = errors.New("this instance is stopping")
)

// outcome is the result of a wait.
type outcome int

const (
	reached     outcome = iota // the account has the version
	behind                     // the account has a lower version, and the time is over or an event is missing
	absent                     // the time is over and the account has no row
	unreachable                // the database could not be queried when the time was over
	stopping
)

// answer is the answer to a waiter. The account is set if the outcome is reached or behind.
type answer struct {
	outcome outcome
	account accountdb.Current
}

// waiter waits until an account has a row with at least the version.
type waiter struct {
	id      string
	version int64
	// since is the number of the last query that was sent before the waiter was added or before
	// its time ended. Only a later query can show that the account has not reached the version.
	since  uint64
	over   bool // the waiting time has ended: the next query decides
	at     int  // index in register.accounts[id]; -1: removed
	answer chan answer
}

// register has the waiters and decides what each of them is answered. It uses no database and
// no clock: its owner sends the queries.
type register struct {
	limit int

	mu       sync.Mutex
	sent     uint64 // number of queries
	waiting  int
	accounts map[string][]*waiter
	due      map[string]struct{} // accounts for the next query: with a new waiter, an ended waiting time or a change
	closed   bool
	somebody chan struct{} // has a value after a waiter was added
}

func newRegister(limit int) *register {
	return &register{
		limit: limit, accounts: map[string][]*waiter{}, due: map[string]struct{}{}, somebody: make(chan struct{}, 1),
	}
}

func (r *register) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waiting
}

// add adds a waiter. The caller has to remove it. If over is true, the next query decides.
func (r *register) add(id string, version int64, over bool) (*waiter, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return nil, errClosed
	case r.waiting >= r.limit:
		return nil, errFull
	}
	w := &waiter{id: id, version: version, since: r.sent, over: over, at: len(r.accounts[id]), answer: make(chan answer, 1)}
	r.accounts[id] = append(r.accounts[id], w)
	r.due[id] = struct{}{}
	r.waiting++
	select {
	case r.somebody <- struct{}{}:
	default:
	}
	return w, nil
}

// changed marks accounts that were written as due.
func (r *register) changed(ids iter.Seq[string]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting == 0 {
		return
	}
	for id := range ids {
		if r.accounts[id] != nil {
			r.due[id] = struct{}{}
		}
	}
}

// remove removes a waiter. It does nothing if the waiter was answered.
func (r *register) remove(w *waiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.at >= 0 {
		r.drop(w)
	}
}

// expire ends the waiting time of a waiter.
func (r *register) expire(w *waiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.at >= 0 {
		w.over, w.since = true, r.sent
		r.due[w.id] = struct{}{}
	}
}

func (r *register) drop(w *waiter) {
	waiters := r.accounts[w.id]
	last := len(waiters) - 1
	waiters[w.at] = waiters[last]
	waiters[w.at].at = w.at
	waiters[last] = nil
	r.accounts[w.id] = waiters[:last]
	w.at = -1
	r.waiting--
	if last == 0 {
		delete(r.accounts, w.id)
		delete(r.due, w.id)
	}
}

// query numbers the next query. It returns the number and the accounts to query: all, or only
// those that are due.
func (r *register) query(all bool) (number uint64, ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent++
	if all {
		for id := range r.accounts {
			ids = append(ids, id)
		}
	} else {
		for id := range r.due {
			ids = append(ids, id)
		}
	}
	clear(r.due)
	return r.sent, ids
}

// found answers waiters from the result of query number. current lacks the accounts of which
// nothing is known.
func (r *register) found(number uint64, ids []string, current []accountdb.Current) {
	known := make(map[string]*accountdb.Current, len(current))
	for i := range current {
		known[current[i].AccountID] = &current[i]
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		r.answer(id, func(w *waiter) (answer, bool) { return w.decide(known[id], number) })
	}
}

// failed answers the waiters whose time is over, after a failed query. The next query has to be
// for all accounts, because the due accounts were not read.
func (r *register) failed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.accounts {
		r.answer(id, func(w *waiter) (answer, bool) { return answer{outcome: unreachable}, w.over })
	}
}

// decide returns the waiter's answer, or false if the waiter has to wait longer. now is the
// account in the result of query number, or nil if the account was not found.
func (w *waiter) decide(now *accountdb.Current, number uint64) (answer, bool) {
	switch {
	case now != nil && now.Exists && now.Version >= w.version:
		return answer{reached, *now}, true
	case number <= w.since: // an event at or before the awaited version is missing
		return answer{}, false
	case now != nil && now.WaitingFor != nil: // the gap is at or before the awaited version
		return answer{behind, *now}, true
	case !w.over:
		return answer{}, false
	case now != nil:
		return answer{behind, *now}, true
	default:
		return answer{outcome: absent}, true
	}
}

// answer sends answers to the waiters of an account for which decide returns one.
func (r *register) answer(id string, decide func(*waiter) (answer, bool)) {
	waiters := r.accounts[id]
	for i := len(waiters) - 1; i >= 0; i-- { // drop moves the last waiter to i
		w := waiters[i]
		if a, decided := decide(w); decided {
			r.drop(w)
			w.answer <- a
		}
	}
}

// close ends every wait. Later calls of add fail.
func (r *register) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for id := range r.accounts {
		r.answer(id, func(*waiter) (answer, bool) { return answer{outcome: stopping}, true })
	}
}
