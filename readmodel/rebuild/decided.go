package rebuild

import (
	"context"

	"github.com/jackc/pgx/v5"

	"projector/internal/session"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/repair"
	"projector/sql"
)

// decided is an event that an operator has replayed.
type decided struct {
	accountID string
	version   int64                // 0 if unknown
	place     projection.RecordRef // the event's record; unknown if place.Topic is empty
	altered   bool                 // the applied event differs from the record

	// given is true if dlq replay applied the event in the form that the topic has.
	given bool
}

// isAbout reports whether e, a decision about the given record, concerns the given event of that
// record. If the record has several entries, account and version have to match.
func (e *decided) isAbout(record *projection.Record, ev *event.Event) bool {
	return record.Entry == 0 || e.accountID == ev.AccountID && e.version == ev.Version
}

// Build returns a Build that fills the shadow tables from the topic. It first reads the decisions
// of operators from the audit trail. The shadow tables do not have the effects of later decisions.
func (s *Shadow) Build(ctx context.Context, cfg Config) (*Build, error) {
	run := readmodel.RunConfig{Formats: cfg.Formats, FirstVersion: cfg.FirstVersion, CacheBytes: func() int { return cacheBytes }}
	cfg.Open = func(partition int32) session.Projection { return s.Open(run, cfg.Topic, partition) }
	cfg.Overdue = s.Overdue
	b := New(cfg)
	b.skipAgain = s.skipAgain
	b.decisions = readmodel.NewDecisions(s.live, s.kind)
	if err := b.decisions.Read(ctx); err != nil {
		return nil, err
	}
	if s.accounts != nil {
		for _, e := range b.decisions.AllSkipped() {
			b.skips[e.AccountID] = append(b.skips[e.AccountID], e)
		}
	}
	applied := readmodel.Action{Result: string(readmodel.EffectApplied)}.In(s.kind.Name(), s.custom).Result
	replays, err := readmodel.Collect(ctx, s.live, readReplay, "load the replayed events", sql.Query("rebuild_replays"), applied, s.kind.Name())
	if err != nil {
		return nil, err
	}
	for _, e := range replays {
		b.addReplay(e, s.accounts != nil)
	}
	s.build = b
	return b, nil
}

func readReplay(row pgx.CollectableRow) (*decided, error) {
	e := new(decided)
	return e, row.Scan(&e.accountID, &e.version, &e.altered, &e.place.Topic, &e.place.Partition, &e.place.Offset)
}

// skipAgain skips a version in the shadow tables if it is the account's next version. If seen is
// false, the version is skipped only if its event is parked. After the skip, skipAgain applies the
// events that waited for this version. It returns whether the account has reached the version.
func (s *Shadow) skipAgain(ctx context.Context, e projection.SkippedEvent, seen bool) (passed bool, err error) {
	cfg := readmodel.RepairConfig{Pool: s.Pool, Formats: s.build.cfg.Formats, FirstVersion: s.build.cfg.FirstVersion}
	skipper, ok := s.kind.Replayer(cfg).(*repair.Repair)
	if !ok {
		return false, unknownType(s.kind)
	}
	return skipper.SkipAgain(ctx, repair.Skip{AccountID: e.AccountID, Version: e.Version}, e.Record.Topic != "", seen)
}
