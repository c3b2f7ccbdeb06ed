package consumer

import (
	"testing"
	"time"
)

func (h *healthLog) Warn(condition, reason string) { h.note("warn " + condition + ": " + reason) }

// TestATransactionThatStaysOpenIsReported shows that records which a transaction holds back count
// as lag after some time, and that the instance warns until the transaction has ended.
func TestATransactionThatStaysOpenIsReported(t *testing.T) {
	health := &healthLog{}
	c := scriptedConsumer(t, &script{}, func(cfg *Config) { cfg.Health = health })
	w := newWorker(t.Context(), c, 0)
	c.workers[0] = w // warnings are about owned partitions only
	begin := time.Now()
	const warning = `warn partition t/0 transaction: offsets 7 to 8 cannot be read yet, because a transaction at 7 has been open for more than 5m0s. ` +
		`See the runbook, "open transaction"`
	for _, step := range []struct {
		name        string
		stable, end int64
		after       time.Duration
		held        int64
		warnings    int
	}{
		{"no transaction", 5, 5, 0, 0, 0},
		{"it begins", 5, 9, time.Minute, 0, 0},
		{"it ends, another one begins", 7, 9, 5 * time.Minute, 0, 0},
		{"almost", 7, 9, 9 * time.Minute, 0, 0},
		{"long", 7, 9, 10 * time.Minute, 9, 1},
		{"longer", 7, 9, 11 * time.Minute, 9, 2},
		{"it ends", 9, 9, 12 * time.Minute, 0, 2},
	} {
		w.noteHeld(step.stable, step.end, begin.Add(step.after))
		if held, warnings := w.status.held.Load(), health.count(0, warning); held != step.held || warnings != step.warnings {
			t.Errorf("%s: held %d, %d warnings; want %d and %d: %q", step.name, held, warnings, step.held, step.warnings, health.reported)
		}
	}
	if n := health.count(0, "ok partition t/0 transaction"); n != 1 {
		t.Errorf("the warning has ended %d times", n)
	}
}
