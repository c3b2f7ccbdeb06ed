package rebuild

import (
	"context"
	"errors"

	"projector/internal/cli/exit"
	"projector/internal/session"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/rebuild"
)

// open makes the tables of the rebuild.
func (r *rebuilding) open(ctx context.Context) (err error) {
	r.shadow, err = rebuild.OpenShadow(ctx, r.pool, r.kind, r.cmd.ParkLimit, int64(r.cmd.ParkBytes))
	var unknown *rebuild.UnknownDefinitionError
	if errors.Is(err, rebuild.ErrRebuilding) || errors.As(err, &unknown) {
		return exit.Refuse(err.Error())
	}
	return err
}

// begin prepares the build of every partition, with what people have decided.
func (r *rebuilding) begin(ctx context.Context) error {
	own, err := r.ownName()
	if err != nil {
		return err
	}
	cfg := rebuild.Config{
		Source: r.source, Formats: r.formats, Topic: r.cmd.Topic, TopicID: r.topic.id, Starts: r.topic.starts,
	}
	replays, err := rebuild.LoadReplays(ctx, r.pool, r.kind.Name(), own != "")
	if err != nil {
		return err
	}
	for _, a := range replays {
		cfg.Replays = append(cfg.Replays, rebuild.Replay{
			AccountID: a.AccountID, Version: a.Version, Class: event.Class(a.Class), Altered: a.Altered, Place: a.Place,
		})
	}
	if cfg.Discards, err = rebuild.LoadDiscards(ctx, r.pool, r.kind.Name(), r.cmd.Topic); err != nil {
		return err
	}
	if err := r.skips(ctx, &cfg, own); err != nil {
		return err
	}
	run := readmodel.RunConfig{Formats: r.formats, FirstVersion: r.cmd.FirstVersion, CacheBytes: func() int { return rebuild.CacheBytes }}
	cfg.Open = func(partition int32) session.Projection { return r.shadow.Open(run, cfg.Topic, partition) }
	cfg.Overdue = func(ctx context.Context, partitions []int32) ([]int32, error) {
		return r.shadow.Overdue(ctx, cfg.Topic, partitions)
	}
	r.build = rebuild.New(cfg)
	return nil
}

// skips has the versions skipped again that people have skipped, where versions are in order.
func (r *rebuilding) skips(ctx context.Context, cfg *rebuild.Config, own string) error {
	repair := readmodel.RepairConfig{Formats: r.formats, FirstVersion: r.cmd.FirstVersion}
	cfg.PassOver = func(ctx context.Context, x *rebuild.Skip, seen bool) (bool, error) {
		return r.shadow.SkipAgain(ctx, repair, &rebuild.AuditedEvent{AccountID: x.AccountID, Version: x.Version, Place: x.Place}, seen)
	}
	if _, unordered := r.kind.(readmodel.AppendDefinition); unordered {
		return nil // no version is skipped
	}
	cfg.Ordered = true
	skips, err := rebuild.LoadSkips(ctx, r.pool, own)
	for _, a := range skips {
		cfg.Skips = append(cfg.Skips, rebuild.Skip{AccountID: a.AccountID, Version: a.Version, Place: a.Place})
	}
	return err
}

// ownName is the name of a custom projection; empty: it is built in.
func (r *rebuilding) ownName() (string, error) {
	p, err := r.cmd.Own()
	if p == nil {
		return "", err
	}
	return p.Name, nil
}

// readLater reads the events beyond the positions, and reports whether one of them is of something
// that seemed to have none: positions may have been set back, by a release that forgot how far
// records were processed.
func (r *rebuilding) readLater(ctx context.Context) (some bool, err error) {
	now, err := r.source.extent(ctx)
	if err != nil {
		return false, err
	}
	for number, end := range now.ends {
		for record, err := range r.source.Records(ctx, number, r.build.Next(number), end) {
			if err != nil {
				return some, err
			}
			format, err := r.formats.Resolve(ctx, record.Message)
			if err != nil {
				return some, err
			}
			var d event.Decoded
			if format.Decode(record.Message, &d); d.Event.AccountID != "" {
				found := r.shadow.Later(readmodel.Storable(d.Event.AccountID), d.Event.Version, readmodel.Storable(d.Event.ID))
				some = some || found
			}
		}
	}
	return some, nil
}
