package cli

import (
	"context"
	"fmt"

	"projector/readmodel"
)

// tooMany refuses to change more accounts than is allowed.
func (r *rebuilding) tooMany(report *readmodel.RebuildReport) error {
	if would := r.cmd.wouldChange(report); r.cmd.Yes && would > r.cmd.MaxDiff {
		return refusef("%d accounts would change and --max-differences (PROJECTOR_MAX_DIFFERENCES) is %d: nothing was changed; "+
			"look at what differs before you allow more", would, r.cmd.MaxDiff)
	}
	return nil
}

// wouldChange is how many accounts would be replaced or removed.
func (c *rebuildCmd) wouldChange(report *readmodel.RebuildReport) int64 {
	if c.Remove {
		return report.Different()
	}
	return report.Different() - report.Kinds[readmodel.RebuildUnknown]
}

// swap puts the rebuilt accounts in the place of those that differ.
func (r *rebuilding) swap(ctx context.Context, report *readmodel.RebuildReport) (*readmodel.Swapped, error) {
	if r.cmd.wouldChange(report) == 0 {
		return new(readmodel.Swapped), nil
	}
	done, err := r.shadow.Swap(ctx, readmodel.SwapOptions{
		Topic: r.cmd.Topic, ParkLimit: r.cmd.ParkLimit, Actor: r.cmd.name(), Remove: r.cmd.Remove, Partial: r.cmd.Partial,
	}, r.catchUp)
	if err == nil && done.Left > 0 {
		err = r.shadow.Moved(ctx, report, r.cmd.Remove)
	}
	if err != nil && done.Replaced+done.Removed > 0 {
		err = fmt.Errorf("%d accounts were replaced and %d removed before this: %w", done.Replaced, done.Removed, err)
	}
	return &done, err
}

// catchUp implements readmodel.CatchUp.
func (r *rebuilding) catchUp(ctx context.Context, positions []readmodel.TopicPosition, ahead bool) error {
	ends, err := r.ends(positions)
	if err != nil {
		return err
	}
	if ahead {
		now, err := r.source.extent(ctx)
		if err != nil {
			return err
		}
		for number := range r.topic.starts { // of what was made since nothing is rebuilt
			ends[number] = max(ends[number], now.ends[number])
		}
	}
	return r.advance(ctx, ends)
}
