package retry

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Lines limits how often a repeated event is logged. Each key is limited separately. Each log line
// has the number of events since the last line of its key. Lines is safe for concurrent use.
type Lines struct {
	pauses []time.Duration
	quiet  time.Duration

	mu   sync.Mutex
	keys map[string]*counted
}

// counted has the number of a key's events since the key's last log line.
type counted struct {
	incident
	n     int
	write func(n int)
}

// maxKeys limits the memory, because there can be any number of keys.
const maxKeys = 256

// NewLines returns Lines that write a line for the first event of a key, and then after each of the
// pauses. The last pause repeats. If no event of a key happens for the duration quiet, the key's
// next event counts as the first again.
func NewLines(quiet time.Duration, pauses ...time.Duration) *Lines {
	return &Lines{pauses: pauses, quiet: quiet, keys: map[string]*counted{}}
}

// Count notes that an event has happened n more times. It writes a line if a line is due.
// Otherwise, a later Count or Flush writes it. write receives the number of events for the line.
func (l *Lines) Count(key string, n int, write func(n int)) {
	if n <= 0 {
		return
	}
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.keys[key]
	if c == nil {
		l.makeRoom(now)
		c = &counted{}
		l.keys[key] = c
	}
	c.happens(now, now.Add(l.quiet))
	c.n, c.write = c.n+n, write
	l.flush(c, now)
}

// Flush writes the lines that are due now.
func (l *Lines) Flush() {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(l.keys)) {
		l.flush(l.keys[key], now)
	}
}

// End writes all remaining lines. Call it after the last event.
func (l *Lines) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(l.keys)) {
		l.keys[key].line()
	}
}

// flush writes the line of a key if it is due.
func (l *Lines) flush(c *counted, now time.Time) {
	if c.n > 0 && c.due(now, l.pauses) {
		c.line()
	}
}

func (c *counted) line() {
	if c.n > 0 {
		c.write(c.n)
		c.n = 0
	}
}

// makeRoom removes the keys whose incident is over, if there are too many keys. If there are still
// too many, it removes all keys.
func (l *Lines) makeRoom(now time.Time) {
	if len(l.keys) < maxKeys {
		return
	}
	maps.DeleteFunc(l.keys, func(_ string, c *counted) bool { return c.over(now) })
	if len(l.keys) >= maxKeys {
		clear(l.keys)
	}
}

// incident is a series of repetitions of one event. The incident ends when the event has not
// happened for some time. Its methods decide when a log line is due.
type incident struct {
	ends  time.Time // when the incident is over, if the event does not happen again
	next  time.Time // when the next line is due
	lines int       // number of lines so far
}

func (i *incident) over(now time.Time) bool { return !now.Before(i.ends) }

// happens notes one more repetition of the event. It reports whether a new incident begins. If the
// event does not happen again, the incident is over at the time in the parameter ends.
func (i *incident) happens(now, ends time.Time) (begins bool) {
	if begins = i.over(now); begins {
		*i = incident{next: now}
	}
	if ends.After(i.ends) {
		i.ends = ends
	}
	return begins
}

// due reports whether a line is due now. If it is due, the caller writes it, and the next line is
// due after a pause.
func (i *incident) due(now time.Time, pauses []time.Duration) bool {
	if now.Before(i.next) {
		return false
	}
	i.next = now.Add(pauses[min(i.lines, len(pauses)-1)])
	i.lines++
	return true
}
