package telemetry

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// defaultStallAfter is the time without a heartbeat after which the instance should be restarted. A
// poll returns within seconds even on an idle topic and with every dependency down.
const defaultStallAfter = 2 * time.Minute

// HealthConfig configures Health; its zero value is ready for use.
type HealthConfig struct {
	Clock      func() time.Time // default time.Now
	StallAfter time.Duration    // default defaultStallAfter
}

// Health holds the named conditions that make an instance unready, and the
// heartbeat that keeps it alive. It is safe for concurrent use.
//
//	starting ──Started──▶ ready ◀──Fail / OK──▶ unready ──Stopping──▶ stopping
type Health struct {
	clock      func() time.Time
	stallAfter time.Duration
	born       time.Time

	// beat is the time of the last heartbeat, in nanoseconds since born, plus
	// one; 0 is before the first, when the watchdog is not armed yet: an instance that
	// waits for its database at start must not be restarted for it.
	beat atomic.Int64

	mu         sync.Mutex
	phase      phase
	since      time.Time // when the phase began
	conditions map[string]condition
	warnings   map[string]Reason
}

type phase uint8

const (
	starting phase = iota
	running
	stopping
)

type condition struct {
	reason string
	since  time.Time
	counts time.Time // from when on it makes the instance unready
}

// Reason is why an instance is not ready, or needs attention.
type Reason struct {
	Condition string    `json:"condition"` // e.g. "database", "partition account-events/3"
	Reason    string    `json:"reason"`    // one line
	Since     time.Time `json:"since"`
}

// NewHealth returns a Health that is unready with the reason "starting".
func NewHealth(cfg HealthConfig) *Health {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	now := cfg.Clock()
	return &Health{
		clock:      cfg.Clock,
		stallAfter: cmp.Or(cfg.StallAfter, defaultStallAfter),
		born:       now,
		since:      now,
		conditions: make(map[string]condition),
		warnings:   make(map[string]Reason),
	}
}

// Started ends the start: from now on only the conditions decide.
func (h *Health) Started() {
	h.enter(running)
}

// Stopping makes the instance unready until it ends, so that it gets no more
// traffic while it drains, and disarms the watchdog: the poll loop has ended
// on purpose.
func (h *Health) Stopping() {
	h.enter(stopping)
}

// enter moves to a later phase; there is no way back.
func (h *Health) enter(p phase) {
	now := h.clock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if p > h.phase {
		h.phase, h.since = p, now
	}
}

// Fail makes the instance unready until OK(name). A repeated Fail renews the
// reason and keeps the time of the first.
func (h *Health) Fail(name, reason string) { h.FailAfter(name, reason, 0) }

// FailAfter is Fail for a condition that may end by itself. It counts only if it still exists after a
// grace period.
func (h *Health) FailAfter(name, reason string, grace time.Duration) {
	now := h.clock()
	h.mu.Lock()
	defer h.mu.Unlock()
	c, exists := h.conditions[name]
	if !exists {
		c = condition{since: now, counts: now.Add(grace)}
	}
	if counts := now.Add(grace); counts.Before(c.counts) {
		c.counts = counts
	}
	c.reason = oneLine(reason)
	h.conditions[name] = c
}

// Warn reports a problem that a person has to repair although the instance is ready, until OK(name). A
// repeated Warn replaces the reason and keeps the time of the first.
func (h *Health) Warn(name, reason string) {
	now := h.clock()
	h.mu.Lock()
	defer h.mu.Unlock()
	w, exists := h.warnings[name]
	if !exists {
		w = Reason{Condition: name, Since: now}
	}
	w.Reason = oneLine(reason)
	h.warnings[name] = w
}

// OK ends the condition or warning. Without one it has no effect.
func (h *Health) OK(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.conditions, name)
	delete(h.warnings, name)
}

// Warnings returns the problems that Warn has reported and OK has not ended, sorted by condition.
func (h *Health) Warnings() []Reason {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.SortedFunc(maps.Values(h.warnings), byCondition)
}

func byCondition(a, b Reason) int { return cmp.Compare(a.Condition, b.Condition) }

// Ready reports whether the instance is ready. If not, it returns the reasons, sorted by condition.
func (h *Health) Ready() (bool, []Reason) {
	now := h.clock()
	h.mu.Lock()
	defer h.mu.Unlock()
	var reasons []Reason
	switch h.phase {
	case starting:
		reasons = append(reasons, Reason{Condition: "projector", Reason: "starting", Since: h.since})
	case stopping:
		reasons = append(reasons, Reason{Condition: "projector", Reason: "stopping", Since: h.since})
	case running:
	}
	for name, c := range h.conditions {
		if !now.Before(c.counts) {
			reasons = append(reasons, Reason{Condition: name, Reason: c.reason, Since: c.since})
		}
	}
	slices.SortFunc(reasons, byCondition)
	return len(reasons) == 0, reasons
}

// Beat is called by the poll loop on each turn. The first call arms the
// watchdog.
func (h *Health) Beat() {
	h.beat.Store(int64(h.clock().Sub(h.born)) + 1)
}

// Alive is false if a restart would help: there was no heartbeat for longer than StallAfter. silence is
// the time since the last heartbeat, 0 while the watchdog is not armed.
func (h *Health) Alive() (alive bool, silence time.Duration) {
	h.mu.Lock()
	armed := h.phase != stopping
	h.mu.Unlock()
	last := h.beat.Load()
	if last == 0 || !armed {
		return true, 0
	}
	silence = h.clock().Sub(h.born) - time.Duration(last-1)
	return silence <= h.stallAfter, silence
}

// oneLine keeps a reason on its line of /readyz.
func oneLine(s string) string {
	return strings.Join(strings.Fields(s), " ")
}
