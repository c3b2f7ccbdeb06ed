package reader

import (
	"errors"
	"iter"
	"maps"
	"slices"
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
	reached     outcome = iota // the account has at least the version
	behind                     // the account has a lower version, and the time is over or an event is missing
	absent                     // the time is over, and nothing is known of the account
	unreachable                // the time is over, and the last query failed
	stopping
)

// answer is what a waiter receives. The field account is set only for the outcomes reached and
// behind.
type answer struct {
	outcome outcome
	account accountdb.Current
}

// waiter waits until the row of an account has at least the version.
type waiter struct {
	id      string
	version int64
	// since is the number of the last query that was sent before the waiter was added. When the
	// waiting time ends, since is set to the last query's number again. Only a query with a higher
	// number can show that the account has not reached the version.
	since  uint64
	over   bool // the waiting time is over, so the next query decides
	at     int  // index in register.accounts[id]; -1 after the removal
	answer chan answer
}

// register has the waiters and decides which answer each of them receives. It uses neither the
// database nor a clock, because its owner sends the queries.
type register struct {
	limit int

	mu       sync.Mutex
	sent     uint64 // number of the last query
	waiting  int
	accounts map[string][]*waiter
	// due are the accounts that the next query must read. These accounts have a new waiter, have a
	// waiter whose time is over, or were written.
	due         map[string]struct{}
	closed      bool
	waiterAdded chan struct{} // contains a value after a waiter was added
}

func newRegister(limit int) *register {
	return &register{
		limit: limit, accounts: map[string][]*waiter{}, due: map[string]struct{}{}, waiterAdded: make(chan struct{}, 1),
	}
}

func (r *register) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waiting
}

// add adds a waiter. The caller has to remove it. If over is true, the waiter does not wait longer
// than the next query.
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
	case r.waiterAdded <- struct{}{}:
	default:
	}
	return w, nil
}

// changed marks written accounts as due, if a client waits for them.
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

// remove removes a waiter. It does nothing if the waiter was already answered.
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

// query gives the next query a number. It returns this number and the accounts to query. If all is
// true, these are the accounts of all waiters, otherwise the accounts that are due.
func (r *register) query(all bool) (number uint64, ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent++
	if all {
		ids = slices.Collect(maps.Keys(r.accounts))
	} else {
		ids = slices.Collect(maps.Keys(r.due))
	}
	clear(r.due)
	return r.sent, ids
}

// found sends answers to waiters after a query. The parameter number is the query's number. The
// parameter ids has the queried accounts, and current has the accounts that the query returned.
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

// failed sends an answer to the waiters whose time is over, because a query has failed. The
// accounts of the failed query were not read, and they are no longer in the field due. So the next
// query must be for the accounts of all waiters.
func (r *register) failed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.accounts {
		r.answer(id, func(w *waiter) (answer, bool) { return answer{outcome: unreachable}, w.over })
	}
}

// decide returns the waiter's answer, or false if the waiter has to wait longer. The parameter now
// is the account in the result of the query with this number. It is nil if the result does not
// contain the account.
func (w *waiter) decide(now *accountdb.Current, number uint64) (answer, bool) {
	switch {
	case now != nil && now.Exists && now.Version >= w.version:
		return answer{reached, *now}, true
	case number <= w.since: // the query is too old to show that the version is missing
		return answer{}, false
	case now != nil && now.WaitingFor != nil: // the missing version is at most the awaited one
		return answer{behind, *now}, true
	case !w.over:
		return answer{}, false
	case now != nil:
		return answer{behind, *now}, true
	default:
		return answer{outcome: absent}, true
	}
}

// answer calls decide for each waiter of an account. If decide returns an answer, the waiter
// receives it.
func (r *register) answer(id string, decide func(*waiter) (answer, bool)) {
	waiters := r.accounts[id]
	for i := len(waiters) - 1; i >= 0; i-- { // downwards, because drop moves the last waiter to i
		w := waiters[i]
		if a, decided := decide(w); decided {
			r.drop(w)
			w.answer <- a
		}
	}
}

// close sends the outcome stopping to all waiters. After that, add fails.
func (r *register) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for id := range r.accounts {
		r.answer(id, func(*waiter) (answer, bool) { return answer{outcome: stopping}, true })
	}
}
