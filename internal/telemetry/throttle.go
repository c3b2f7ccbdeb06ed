package telemetry

import (
	"sync"
	"time"
)

const (
	throttleFirst = 5 * time.Second // pause after the first line of a key
	throttleMax   = 5 * time.Minute // the pause doubles up to this
	// throttleQuiet without a single occurrence ends the incident: the next
	// line is written at once. The client retries within seconds, so this is
	// no mere pause.
	throttleQuiet = 30 * time.Second
	// throttleKeys bounds memory, whatever texts arrive.
	throttleKeys = 256
)

// throttle lets repeated lines through at a falling rate, key by key: at once,
// then after 5 s, 10 s, 20 s and so on.
type throttle struct {
	clock func() time.Time

	mu   sync.Mutex
	keys map[string]*incident
}

type incident struct {
	last       time.Time // last occurrence, written or not
	next       time.Time // before this nothing is written
	pause      time.Duration
	suppressed int
}

func newThrottle(clock func() time.Time) *throttle {
	return &throttle{clock: clock, keys: make(map[string]*incident)}
}

// allow reports whether a line may be written now, and how many equal ones were
// held back since the last.
func (t *throttle) allow(key string) (suppressed int, ok bool) {
	now := t.clock()
	t.mu.Lock()
	defer t.mu.Unlock()
	i := t.keys[key]
	if i == nil || now.Sub(i.last) >= throttleQuiet {
		t.makeRoom(now)
		suppressed = 0
		if i != nil {
			suppressed = i.suppressed // the tail of the incident before
		}
		t.keys[key] = &incident{last: now, next: now.Add(throttleFirst), pause: throttleFirst}
		return suppressed, true
	}
	i.last = now
	if now.Before(i.next) {
		i.suppressed++
		return 0, false
	}
	suppressed = i.suppressed
	i.suppressed = 0
	i.pause = min(2*i.pause, throttleMax)
	i.next = now.Add(i.pause)
	return suppressed, true
}

// makeRoom forgets incidents that are over and, when that is not enough, all.
func (t *throttle) makeRoom(now time.Time) {
	if len(t.keys) < throttleKeys {
		return
	}
	for key, i := range t.keys {
		if now.Sub(i.last) >= throttleQuiet {
			delete(t.keys, key)
		}
	}
	if len(t.keys) >= throttleKeys {
		clear(t.keys)
	}
}
