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

// stallAfter is the time without a heartbeat after which the instance should be restarted.
// This time is long enough to mean that the poll loop hangs. A poll returns within seconds, even if
// the topic is idle or all dependencies are down.
const stallAfter = 2 * time.Minute

// Health has the named conditions that make an instance unready. It also has the heartbeat of the
// poll loop. If the heartbeats stop, the instance is not alive. Health is safe for concurrent use.
//
//	starting ──Started──▶ ready ◀──Fail / OK──▶ unready ──Stopping──▶ stopping
type Health struct {
	born time.Time

	// beat is the time of the last heartbeat in nanoseconds since born, plus one. It is 0 before
	// the first heartbeat. Until then the watchdog is not armed, because an instance that waits for
	// its database at the start must not be restarted.
	beat atomic.Int64

	mu         sync.Mutex
	phase      phase
	since      time.Time // start of the phase
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
	counts time.Time // from this time on, the condition makes the instance unready
}

// Reason says why an instance is not ready, or why it needs attention.
type Reason struct {
	Condition string    `json:"condition"` // for example "database" or "partition account-events/3"
	Reason    string    `json:"reason"`    // a single line
	Since     time.Time `json:"since"`
}

// NewHealth returns a Health that is unready with the reason "starting".
func NewHealth() *Health {
	now := time.Now()
	return &Health{born: now, since: now, conditions: map[string]condition{}, warnings: map[string]Reason{}}
}

// Started ends the phase of starting. After this call and before Stopping, only the conditions
// decide whether the instance is ready.
func (h *Health) Started() {
	h.enter(running)
}

// Stopping makes the instance unready until the process ends, because it must get no more traffic.
// It also disarms the watchdog, because the poll loop ends on purpose.
func (h *Health) Stopping() {
	h.enter(stopping)
}

// enter moves to a later phase, and never back to an earlier one.
func (h *Health) enter(p phase) {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if p > h.phase {
		h.phase, h.since = p, now
	}
}

// Fail makes the instance unready until OK is called with the same name. A repeated Fail replaces
// the reason but does not change the time of the first Fail.
func (h *Health) Fail(name, reason string) { h.FailAfter(name, reason, 0) }

// FailAfter is like Fail, for a condition that may end by itself. The condition counts only if it
// still exists after the grace period.
func (h *Health) FailAfter(name, reason string, grace time.Duration) {
	now := time.Now()
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

// Warn reports a problem that a person has to repair although the instance is ready. The warning
// lasts until OK is called with the same name. A repeated Warn replaces the reason but does not
// change the time of the first Warn.
func (h *Health) Warn(name, reason string) {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	w, exists := h.warnings[name]
	if !exists {
		w = Reason{Condition: name, Since: now}
	}
	w.Reason = oneLine(reason)
	h.warnings[name] = w
}

// OK ends the condition and the warning of that name. Without such a condition or warning, it has
// no effect.
func (h *Health) OK(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.conditions, name)
	delete(h.warnings, name)
}

// Warnings returns the current warnings, sorted by condition.
func (h *Health) Warnings() []Reason {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.SortedFunc(maps.Values(h.warnings), byCondition)
}

func byCondition(a, b Reason) int { return cmp.Compare(a.Condition, b.Condition) }

// Ready reports whether the instance is ready. If not, it returns the reasons, sorted by condition.
func (h *Health) Ready() (bool, []Reason) {
	now := time.Now()
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

// Beat notes a heartbeat. The poll loop calls it in each iteration. The first call arms the
// watchdog.
func (h *Health) Beat() {
	h.beat.Store(int64(time.Since(h.born)) + 1)
}

// Alive returns false if there was no heartbeat for longer than stallAfter. In that case a restart
// would help. The result silence is the time since the last heartbeat. It is 0 while the watchdog
// is not armed.
func (h *Health) Alive() (alive bool, silence time.Duration) {
	h.mu.Lock()
	armed := h.phase != stopping
	h.mu.Unlock()
	last := h.beat.Load()
	if last == 0 || !armed {
		return true, 0
	}
	silence = time.Since(h.born) - time.Duration(last-1)
	return silence <= stallAfter, silence
}

// oneLine puts a reason on one line, because /readyz has one line for each reason.
func oneLine(s string) string {
	return strings.Join(strings.Fields(s), " ")
}
