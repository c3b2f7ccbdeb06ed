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

func (r *rebuilding) swap(ctx context.Context) (*rebuild.Swapped, error) {
	old, err := r.replacedMapping(ctx) // again, because an instance may have stored another mapping since
	if err != nil {
		return nil, err
	}
	r.remapped = old != nil
	if r.wouldChange() == 0 && r.report.Markers == 0 && r.changed == nil && !r.remapped {
		return new(rebuild.Swapped), nil
	}
	opts := r.swapOptions()
	if opts.Mapping, err = r.cmd.Reads(); err != nil {
		return nil, err
	}
	done, err := r.shadow.Swap(ctx, opts, r.catchUp)
	if many, is := errors.AsType[*rebuild.TooManyError](err); is {
		return nil, r.refuseMany(many.Would)
	}
	r.shadow.Moved(&r.report)
	return &done, err
}

func (r *rebuilding) swapOptions() rebuild.SwapOptions {
	return rebuild.SwapOptions{
		Topic: r.cmd.Topic, Actor: r.on.Actor, Reason: r.on.Reason, Remove: r.cmd.Remove, Most: &r.cmd.MaxDiff, File: r.changed,
	}
}

// replacedMapping returns the error about the mapping or the first version of the live rows, if the
// rebuild replaces it because it reads events differently.
func (r *rebuilding) replacedMapping(ctx context.Context) (old *readmodel.MappingChangedError, err error) {
	reads, err := r.cmd.Reads()
	if err != nil {
		return nil, err
	}
	if err = readmodel.CheckMapping(ctx, r.on.Pool, r.cmd.kind.Name(), reads); errors.As(err, &old) {
		return old, nil
	}
	return nil, err
}

func (r *rebuilding) catchUp(ctx context.Context, positions []rebuild.TopicPosition) error {
	ends, err := r.ends(positions)
	if err != nil {
		return err
	}
	return r.advance(ctx, ends)
}
