package rebuild

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"projector/internal/session"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/repair"
	"projector/sql"
)

// decided is an event that an operator has replayed, discarded or skipped.
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
// of operators from the audit trail.
func (s *Shadow) Build(ctx context.Context, cfg Config) (*Build, error) {
	run := readmodel.RunConfig{Formats: cfg.Formats, FirstVersion: cfg.FirstVersion, CacheBytes: func() int { return cacheBytes }}
	cfg.Open = func(partition int32) session.Projection { return s.Open(run, cfg.Topic, partition) }
	cfg.Overdue = s.Overdue
	name, ordered := s.kind.Name(), s.accounts != nil
	b := New(cfg)
	b.skipAgain = s.skipAgain
	replays, err := s.audited(ctx, "rebuild_replays", s.result(string(readmodel.EffectApplied)), name)
	if err != nil {
		return nil, err
	}
	for _, e := range replays {
		b.addReplay(e, ordered)
	}
	discards, err := s.audited(ctx, "rebuild_discards", name, cfg.Topic)
	if err != nil {
		return nil, err
	}
	for _, e := range discards {
		b.discards[e.place] = append(b.discards[e.place], e)
	}
	if ordered {
		skips, err := s.audited(ctx, "rebuild_skips", s.result(readmodel.ResultSkipped))
		if err != nil {
			return nil, err
		}
		for _, e := range skips {
			b.skips[e.accountID] = append(b.skips[e.accountID], e)
		}
	}
	s.build = b
	return b, nil
}

// result returns the text by which the audit trail records the given result of an action on this
// projection.
func (s *Shadow) result(of string) string {
	return readmodel.Action{Result: of}.In(s.kind.Name(), s.custom).Result
}

func (s *Shadow) audited(ctx context.Context, query string, args ...any) ([]*decided, error) {
	rows, _ := s.live.Query(ctx, sql.Query(query), args...)
	events, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*decided, error) {
		e := new(decided)
		return e, row.Scan(&e.accountID, &e.version, &e.altered, &e.place.Topic, &e.place.Partition, &e.place.Offset)
	})
	if err != nil {
		return nil, fmt.Errorf("load actions: %w", err)
	}
	return events, nil
}

// skipAgain skips a version in the shadow tables if it is the account's next version. If seen is
// false, the version is skipped only if its event is parked. After the skip, skipAgain applies the
// events that waited for this version. It returns whether the account has reached the version.
func (s *Shadow) skipAgain(ctx context.Context, e *decided, seen bool) (passed bool, err error) {
	cfg := readmodel.RepairConfig{Pool: s.Pool, Formats: s.build.cfg.Formats, FirstVersion: s.build.cfg.FirstVersion}
	skipper, ok := s.kind.Replayer(cfg).(*repair.Repair)
	if !ok {
		return false, unknownType(s.kind)
	}
	return skipper.SkipAgain(ctx, repair.Skip{AccountID: e.accountID, Version: e.version}, e.place.Topic != "", seen)
}
