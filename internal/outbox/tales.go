package outbox

import (
	"log/slog"
	"time"

	"projector/projection"
)

// tellEvery is how often the log tells of one kind of thing, at most.
const tellEvery = time.Minute

// tales tells in the log what came of the questions: a line a kind and minute, with how many
// there were since the line before.
type tales struct {
	log *slog.Logger

	applied, healed tale
	refusals        tale
	poisons         tale
}

// tale is what the log has not told yet.
type tale struct {
	n    int
	last Version
	why  string
	told time.Time // zero: never
}

func (t *tale) add(n int, last Version, why string) {
	if n > 0 {
		t.n, t.last, t.why = t.n+n, last, why
	}
}

// due reports whether there is something to tell, which is told then.
func (t *tale) due(now time.Time) bool { return t.n > 0 && now.Sub(t.told) >= tellEvery }

func (t *tale) done(now time.Time) { t.n, t.told = 0, now }

func (t *tale) lastEvent() slog.Attr {
	return slog.Group("last", "account_id", t.last.AccountID, "version", t.last.Number)
}

func (t *tales) fetched(applied, healed int, last Version) {
	t.applied.add(applied, last, "")
	t.healed.add(healed, last, "")
}

func (t *tales) refused(a *Answer) { t.refusals.add(a.Refused, a.Last, a.Why) }

func (t *tales) poison(v Version, d projection.Decision) {
	t.poisons.add(1, v, string(d.Class)+": "+d.Message)
}

// tell tells what there is to tell.
func (t *tales) tell(now time.Time) {
	if t.applied.due(now) {
		t.log.Info("missing events were fetched from the outbox", slog.Int("events", t.applied.n), slog.Int("healed_events", t.healed.n), t.applied.lastEvent())
		t.applied.done(now)
		t.healed.done(now)
	}
	if t.refusals.due(now) {
		t.log.Warn("the outbox returned events that are not applied; look at --outbox-query (OUTBOX_QUERY)",
			slog.Int("events", t.refusals.n), slog.String("reason", t.refusals.why), t.refusals.lastEvent())
		t.refusals.done(now)
	}
	if t.poisons.due(now) {
		t.log.Warn("missing events from the outbox cannot be applied", slog.Int("events", t.poisons.n), slog.String("reason", t.poisons.why), t.poisons.lastEvent())
		t.poisons.done(now)
	}
}
