package rebuild

import (
	"context"
	"errors"

	"projector/internal/cli/exit"
	"projector/projection"
	"projector/readmodel"
	"projector/readmodel/rebuild"
)

func (r *rebuilding) open(ctx context.Context) (err error) {
	r.shadow, err = rebuild.OpenShadow(ctx, r.on.Pool, r.cmd.kind, r.cmd.ParkLimit, int64(r.cmd.ParkBytes))
	if errors.Is(err, rebuild.ErrRebuilding) {
		return exit.Refuse(err.Error() + "; wait until it has ended")
	}
	return err
}

func (r *rebuilding) begin(ctx context.Context) (err error) {
	r.build, err = r.shadow.Build(ctx, rebuild.Config{
		Source: r.source, Formats: r.cmd.formats, FirstVersion: r.cmd.FirstVersion, Topic: r.cmd.Topic, TopicID: r.topic.id, Starts: r.topic.starts,
	})
	return err
}

// readLater reads the events after the positions. It reports whether one of these events belongs to
// a row that seemed to have no events. This happens if an old release has set positions back
// without storing how far records were processed.
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
			format, err := r.cmd.formats.Resolve(ctx, record.Message)
			if err != nil {
				return some, err
			}
			for _, e := range projection.AppendDecoded(nil, record, format) {
				if ev := &e.Decoded.Event; ev.AccountID != "" {
					found := r.shadow.Later(readmodel.Storable(ev.AccountID), ev.Version, readmodel.Storable(ev.ID))
					some = some || found
				}
			}
		}
	}
	return some, nil
}
