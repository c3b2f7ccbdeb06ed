package outbox

import (
	"log/slog"
	"time"

	"projector/internal/retry"
	"projector/projection"
)

// linePause is the shortest time between two log lines of the same text.
const linePause = time.Minute

// fetchLog logs the results of queries. It writes each text at most once a minute, with the number
// of events since the previous line. It is not safe for concurrent use.
type fetchLog struct {
	log    *slog.Logger
	lines  *retry.Lines
	healed int // parked events that were applied since the last line about fetched events
}

func newFetchLog(log *slog.Logger) fetchLog {
	return fetchLog{log: log, lines: retry.NewLines(nil, linePause, linePause)}
}

func (l *fetchLog) fetched(applied, healed int, last Version) {
	l.healed += healed
	l.lines.Count("fetched", applied, func(n int) {
		l.log.Info("missing events were fetched from the outbox", slog.Int("events", n), slog.Int("healed_events", l.healed), lastEvent(last))
		l.healed = 0
	})
}

func (l *fetchLog) refused(a *Answer) {
	last, why := a.Last, a.Why
	l.lines.Count("refused", a.Refused, func(n int) {
		l.log.Warn("the outbox returned events that are not applied; check --outbox-query (OUTBOX_QUERY)",
			slog.Int("events", n), slog.String("reason", why), lastEvent(last))
	})
}

func (l *fetchLog) poison(v Version, d projection.Decision) {
	l.lines.Count("poison", 1, func(n int) {
		l.log.Warn("missing events from the outbox cannot be applied", slog.Int("events", n),
			slog.String("reason", string(d.Class)+": "+d.Message), lastEvent(v))
	})
}

func lastEvent(v Version) slog.Attr {
	return slog.Group("last", "account_id", v.AccountID, "version", v.Number)
}
