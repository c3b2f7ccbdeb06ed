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

// decided is an event about which people have decided something.
type decided struct {
	accountID string
	version   int64                // 0: not known
	place     projection.RecordRef // of its record; without a topic: not known
	altered   bool                 // what was applied is not what the record has

	// given: of an event that was applied by dlq replay, the topic gives what was applied.
	given bool
}

// isAbout reports whether the decision is about an event in its record: of several entries it is
// the one of the account and version.
func (e *decided) isAbout(record *projection.Record, ev *event.Event) bool {
	return record.Entry == 0 || e.accountID == ev.AccountID && e.version == ev.Version
}

// Build prepares to fill the tables of the shadow from the topic, with what people have decided.
func (s *Shadow) Build(ctx context.Context, cfg Config) (*Build, error) {
	run := readmodel.RunConfig{Formats: cfg.Formats, FirstVersion: cfg.FirstVersion, CacheBytes: func() int { return cacheBytes }}
	cfg.Open = func(partition int32) session.Projection { return s.Open(run, cfg.Topic, partition) }
	cfg.Overdue = s.Overdue
	cfg.skipAgain = s.skipAgain
	var err error
	if cfg.replays, err = s.replayed(ctx); err != nil {
		return nil, err
	}
	if cfg.discards, err = s.discarded(ctx, cfg.Topic); err != nil {
		return nil, err
	}
	if cfg.ordered = s.accounts != nil; cfg.ordered {
		if cfg.skips, err = s.skipped(ctx); err != nil {
			return nil, err
		}
	}
	s.build = New(cfg)
	return s.build, nil
}

// result is what the trail has as the result of an action in this projection.
func (s *Shadow) result(of string) string {
	return readmodel.Action{Result: of}.In(s.kind.Name(), s.custom).Result
}

// skipped lists the versions that were skipped, by account and version.
func (s *Shadow) skipped(ctx context.Context) ([]decided, error) {
	return s.audited(ctx, "rebuild_skips", []any{s.result(readmodel.ResultSkipped)}, func(e *decided) []any {
		return []any{&e.accountID, &e.version, &e.place.Topic, &e.place.Partition, &e.place.Offset}
	})
}

// replayed lists the dead letters that were applied by dlq replay.
func (s *Shadow) replayed(ctx context.Context) ([]decided, error) {
	return s.audited(ctx, "rebuild_replays", []any{s.result(string(readmodel.EffectApplied)), s.kind.Name()}, func(e *decided) []any {
		return []any{&e.accountID, &e.version, &e.altered, &e.place.Topic, &e.place.Partition, &e.place.Offset}
	})
}

// discarded lists the places of the events that were discarded, and not replayed since.
func (s *Shadow) discarded(ctx context.Context, topic string) ([]decided, error) {
	return s.audited(ctx, "rebuild_discards", []any{s.kind.Name(), topic}, func(e *decided) []any {
		e.place.Topic = topic
		return []any{&e.accountID, &e.version, &e.place.Partition, &e.place.Offset}
	})
}

func (s *Shadow) audited(ctx context.Context, query string, args []any, into func(*decided) []any) ([]decided, error) {
	rows, err := s.live.Query(ctx, sql.Query(query), args...)
	if err != nil {
		return nil, fmt.Errorf("load actions: %w", err)
	}
	events, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e decided, err error) {
		err = row.Scan(into(&e)...)
		return e, err
	})
	if err != nil {
		return nil, fmt.Errorf("load actions: %w", err)
	}
	return events, nil
}

// skipAgain skips a version in the shadow if it is the account's next one and, unless seen, if
// its event is parked; then it heals what waits for it. It returns whether the account has
// passed the version.
func (s *Shadow) skipAgain(ctx context.Context, e *decided, seen bool) (passed bool, err error) {
	cfg := readmodel.RepairConfig{Pool: s.Pool, Formats: s.build.cfg.Formats, FirstVersion: s.build.cfg.FirstVersion}
	skipper, ok := s.kind.Replayer(cfg).(repair.Skipper)
	if !ok {
		return false, &UnknownDefinitionError{s.kind}
	}
	return skipper.SkipAgain(ctx, repair.Skip{AccountID: e.accountID, Version: e.version}, e.place.Topic != "", seen)
}
