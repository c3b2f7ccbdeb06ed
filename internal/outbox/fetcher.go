package outbox

import (
	"context"
	"iter"
	"log/slog"
	"slices"
	"time"

	"projector/internal/pace"
	"projector/internal/retry"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/accountdb"
)

const (
	// askEvery is the shortest time between two calls of Fetch.
	askEvery = time.Second
	// The gap register is read at intervals of Config.After/4, but the interval is at least
	// leastRound and at most longestRound.
	leastRound, longestRound = time.Second, 10 * time.Second
)

// Observer counts the events that were fetched. It also counts the stored events that waited for a
// fetched event and were applied after it. Its methods must be safe for concurrent use.
type Observer interface {
	Fetched(n int)
	Healed(n int)
}

// Config contains the settings of a Fetcher.
type Config struct {
	Outbox  Outbox
	Store   readmodel.Replayer // applies the events
	Formats event.Resolver
	// Missing streams the versions that accounts wait for (see accountdb.MissingVersions).
	Missing func(ctx context.Context, f accountdb.MissingFilter) iter.Seq2[accountdb.Missing, error]
	// After is how long a version must be missing before the outbox is queried for it.
	After      time.Duration
	Topic      string
	Group      string         // for the audit trail
	Partitions func() []int32 // returns the partitions whose accounts are queried now
	Actor      string         // for the audit trail
	Retry      retry.Policy
	Observer   Observer
	Log        *slog.Logger
}

// Fetcher queries an outbox for the versions that accounts wait for, and applies the events that
// are returned. It runs concurrently with the consumer, and the consumer does not wait for it.
// Failures are logged and retried.
type Fetcher struct {
	cfg      Config
	schedule *Schedule
	outage   *retry.Outage // outage of the outbox
	store    *retry.Throttled
	log      fetchLog
	asked    bool // whether any query has succeeded
}

// NewFetcher returns a Fetcher.
func NewFetcher(cfg Config) *Fetcher {
	log := retry.Throttle(cfg.Log, "ask the outbox", "dependency", "outbox")
	return &Fetcher{
		cfg: cfg, schedule: NewSchedule(cfg.After), outage: cfg.Retry.Outage(log),
		store: retry.Throttle(cfg.Log, "fetch missing events", "dependency", "postgres"),
		log:   fetchLog{log: cfg.Log, lines: retry.NewLines(linePause, linePause)},
	}
}

// Run queries and applies missing events until ctx ends.
func (f *Fetcher) Run(ctx context.Context) {
	defer f.cfg.Outbox.Close()
	for ctx.Err() == nil {
		pause := f.round(ctx)
		f.log.lines.Flush()
		_ = pace.Sleep(ctx, pause)
	}
}

func (f *Fetcher) readInterval() time.Duration {
	return min(max(f.cfg.After/4, leastRound), longestRound)
}

// round sends queries for the versions that the method due returns, until a query fails. It returns
// the pause before the next round.
func (f *Fetcher) round(ctx context.Context) time.Duration {
	begun := time.Now()
	due, err := f.due(ctx)
	if ctx.Err() != nil {
		return 0
	}
	f.store.Note(err, f.readInterval())
	if err != nil {
		return f.readInterval()
	}
	// If reading the gap register takes long, it is read less often to reduce the load.
	rest := max(f.readInterval(), 10*time.Since(begun))
	if len(due) == 0 && f.asked {
		f.cfg.Outbox.Close()
		return rest
	}
	for i, query := range queries(due) {
		if i > 0 {
			if pace.Sleep(ctx, askEvery) != nil {
				return 0
			}
		}
		if pause := f.ask(ctx, query); pause > 0 {
			return max(askEvery, pause)
		}
	}
	return rest
}

// ask sends one query and applies the events of the result. After a failure it returns the pause
// before the next attempt, otherwise 0.
func (f *Fetcher) ask(ctx context.Context, query []accountdb.Missing) time.Duration {
	by := readmodel.Action{Group: f.cfg.Group, Actor: f.cfg.Actor, Reason: "missing for longer than " + f.cfg.After.String()}
	answer, err := Fetch(ctx, f.cfg.Outbox, f.cfg.Formats, by, versions(query))
	if ctx.Err() != nil {
		return 0
	}
	if err != nil {
		return f.outage.Failed(err)
	}
	f.outage.Over()
	f.asked = true
	f.log.refused(&answer)
	err = f.receive(ctx, query, &answer)
	if ctx.Err() != nil {
		return 0
	}
	f.store.Note(err, f.readInterval())
	if err != nil {
		return f.readInterval()
	}
	return 0
}

// receive applies the events of each account up to the first version that is missing in the result.
// Then it schedules the next query for the versions that are still missing.
func (f *Fetcher) receive(ctx context.Context, query []accountdb.Missing, answer *Answer) error {
	var records []*readmodel.RepairRecord
	for _, m := range query {
		for v := range m.Versions() {
			r := answer.Records[Version{m.AccountID, v}]
			if r == nil {
				break
			}
			records = append(records, r)
		}
	}
	if err := f.apply(ctx, records); err != nil {
		return err
	}
	now := time.Now()
	for _, m := range query {
		next, done := firstNotPassed(m, answer)
		v := Version{m.AccountID, next}
		r := answer.Records[v]
		switch {
		case done:
			f.schedule.Done(m.AccountID)
		case !answer.Asked[v]: // a later query asks for it
		case r == nil || readmodel.EffectOf(r.Decision) != readmodel.EffectPoison:
			f.schedule.Failed(m.AccountID, next, "", now)
		case f.schedule.Failed(m.AccountID, next, r.Action.ValueSHA256, now):
			f.log.poison(v, r.Decision)
		}
	}
	return nil
}

// firstNotPassed returns the first of the versions that the account has not reached. It reports
// whether the account has reached all of them.
func firstNotPassed(m accountdb.Missing, answer *Answer) (version int64, all bool) {
	for v := range m.Versions() {
		if !passed(answer.Records[Version{m.AccountID, v}]) {
			return v, false
		}
	}
	return 0, true
}

// passed reports whether the account has reached the version of the record.
func passed(r *readmodel.RepairRecord) bool {
	return r != nil && r.Decision.Outcome != projection.DeadLettered
}

// apply plans all records and applies those that can be applied. Poison events are recorded in the
// audit trail, unless the last query returned the same event.
func (f *Fetcher) apply(ctx context.Context, records []*readmodel.RepairRecord) error {
	if len(records) == 0 {
		return nil
	}
	if err := f.cfg.Store.Plan(ctx, records); err != nil {
		return err
	}
	records = slices.DeleteFunc(slices.Clone(records), func(r *readmodel.RepairRecord) bool {
		e := &r.Decoded.Event
		switch readmodel.EffectOf(r.Decision) {
		case readmodel.EffectApplied:
			return false
		case readmodel.EffectPoison:
			return f.schedule.Known(e.AccountID, e.Version, r.Action.ValueSHA256)
		default: // Kafka has delivered the event, or an earlier version cannot be applied
			return true
		}
	})
	if len(records) == 0 {
		return nil
	}
	healed := 0
	err := f.cfg.Store.Apply(ctx, records, func(step readmodel.Step) { healed += step.Healed })
	applied, last := 0, Version{}
	for _, r := range records {
		if r.Decided && readmodel.EffectOf(r.Decision) == readmodel.EffectApplied {
			applied, last = applied+1, Version{r.Decoded.Event.AccountID, r.Decoded.Event.Version}
		}
	}
	f.cfg.Observer.Fetched(applied)
	f.cfg.Observer.Healed(healed)
	f.log.fetched(applied, healed, last)
	return err
}

// linePause is the shortest time between two log lines of the same text.
const linePause = time.Minute

// fetchLog logs the results of queries. It writes each text at most once a minute, with the number
// of events since the previous line. It is not safe for concurrent use.
type fetchLog struct {
	log    *slog.Logger
	lines  *retry.Lines
	healed int // parked events that were applied since the last line about fetched events
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
