package rebuild

import (
	"cmp"
	"context"
	"errors"

	"projector/internal/cli/exit"
	"projector/readmodel"
	"projector/readmodel/rebuild"
)

// tooMany refuses a change that is larger than the flags allow.
func (r *rebuilding) tooMany(ctx context.Context) (refusal, err error) {
	would, err := r.shadow.Concerned(ctx, r.cmd.Remove)
	if err != nil || !r.on.Whole || would <= r.cmd.MaxDiff {
		return nil, err
	}
	return r.refuseMany(would), nil
}

func (r *rebuilding) refuseMany(would int64) error {
	of := "rows"
	if r.shadow.OfAccounts() {
		of = "accounts"
	}
	return exit.Refusef("%d %s would change and --max-differences (PROJECTOR_MAX_DIFFERENCES) is %d: nothing was changed; "+
		"read what differs before you allow more", would, of, r.cmd.MaxDiff)
}

// wouldChange returns how many rows would be replaced or removed.
func (r *rebuilding) wouldChange() int64 {
	if r.cmd.Remove {
		return r.report.Different()
	}
	return r.report.Different() - r.report.Kinds[rebuild.Unknown]
}

// differs returns the error for --exit-code if differences are left.
func (r *rebuilding) differs() error {
	left := r.report.Different() + r.report.Markers
	if r.swapped != nil {
		left -= r.swapped.Replaced + r.swapped.Removed + r.swapped.Markers
	}
	if !r.cmd.ExitCode || left <= 0 {
		return nil
	}
	return exit.Refusef("%s differ from what the events give", rebuiltName(r.cmd.kind))
}

// compareFile checks whether the live rows came from another version of the projection file. With the
// four-eyes policy another version is refused, because the approver would run SQL that nobody has
// approved.
func (r *rebuilding) compareFile(ctx context.Context) error {
	own, err := r.cmd.CustomProjection()
	if own == nil {
		return err
	}
	err = readmodel.CheckFile(ctx, r.on.Pool, own)
	if !errors.As(err, new(*readmodel.FileChangedError)) {
		return err
	}
	if on, err := readmodel.FourEyes(ctx, r.on.Pool); err != nil || on {
		return cmp.Or(err, exit.Refusef("four eyes are on, and %s came from another text of its file: have `run --accept-changed-file` go on with the new text, "+
			"then rebuild; nothing was changed", own.Name))
	}
	r.changed = own
	return nil
}

// whyLeftAlone says why a rebuild leaves rows alone.
const whyLeftAlone = "because they have corrected events in them (`dlq replay --from-file`), are ahead of the topic or were repaired just now"

func (r *rebuilding) swap(ctx context.Context) (*rebuild.Swapped, error) {
	remapped, err := r.remaps(ctx) // again, because an instance may have stored another mapping since
	if err != nil {
		return nil, err
	}
	r.remapped = remapped
	if r.wouldChange() == 0 && r.report.Markers == 0 && r.changed == nil && !remapped {
		return new(rebuild.Swapped), nil
	}
	if r.changed != nil && r.report.LeftAlone() > 0 {
		return nil, exit.Refusef("%d of the rows of %s would be left alone, "+whyLeftAlone+": by another text they cannot be rebuilt; nothing was changed",
			r.report.LeftAlone(), r.cmd.kind.Name())
	}
	reads, err := r.cmd.Reads()
	if err != nil {
		return nil, err
	}
	done, err := r.shadow.Swap(ctx, rebuild.SwapOptions{
		Topic: r.cmd.Topic, Actor: r.on.Actor, Reason: r.on.Reason, Remove: r.cmd.Remove, Most: &r.cmd.MaxDiff,
		File: r.changed, Mapping: reads,
	}, r.catchUp)
	if many, is := errors.AsType[*rebuild.TooManyError](err); is {
		return nil, r.refuseMany(many.Would)
	}
	r.shadow.Moved(&r.report)
	return &done, err
}

// remaps reports whether the rows were made with another first version, or with a mapping that
// reads events differently. It refuses the rebuild if some rows would stay unchanged, because the
// new mapping could give other values for them.
func (r *rebuilding) remaps(ctx context.Context) (bool, error) {
	reads, err := r.cmd.Reads()
	if err != nil {
		return false, err
	}
	err = readmodel.CheckMapping(ctx, r.on.Pool, r.cmd.kind.Name(), reads)
	var changed *readmodel.MappingChangedError
	if !errors.As(err, &changed) {
		return false, err
	}
	const why = "the rows of %s were made with %s, and "
	name, made := r.cmd.kind.Name(), changed.Stored
	switch {
	case r.cmd.Partial:
		return false, exit.Refusef(why+"--partial makes only some of them again: use the old one, "+
			"or continue with the new one with `run --accept-changed-mapping`; nothing was changed", name, made)
	case r.report.Kinds[rebuild.Unknown] > 0 && !r.cmd.Remove:
		return false, exit.Refusef(why+"the topic has no event of %d of them, which would stay: remove them with --remove, "+
			"or use the old one; nothing was changed", name, made, r.report.Kinds[rebuild.Unknown])
	case r.report.LeftAlone() > 0:
		return false, exit.Refusef(why+"%d of them would be left alone, "+whyLeftAlone+": use the old one, "+
			"or continue with the new one with `run --accept-changed-mapping`; nothing was changed", name, made, r.report.LeftAlone())
	}
	return true, nil
}

func (r *rebuilding) catchUp(ctx context.Context, positions []rebuild.TopicPosition) error {
	ends, err := r.ends(positions)
	if err != nil {
		return err
	}
	return r.advance(ctx, ends)
}
