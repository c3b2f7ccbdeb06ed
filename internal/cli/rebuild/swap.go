package rebuild

import (
	"context"
	"fmt"

	"projector/internal/cli/exit"
	"projector/internal/cli/output"
	"projector/readmodel"
)

// tooMany refuses to change more accounts than is allowed.
func (r *rebuilding) tooMany(report *readmodel.RebuildReport) error {
	if would := r.cmd.wouldChange(report); r.cmd.Yes && would > r.cmd.MaxDiff {
		return exit.Refusef("%d accounts would change and --max-differences (PROJECTOR_MAX_DIFFERENCES) is %d: nothing was changed; "+
			"look at what differs before you allow more", would, r.cmd.MaxDiff)
	}
	return nil
}

// wouldChange is how many accounts would be replaced or removed.
func (c *Cmd) wouldChange(report *readmodel.RebuildReport) int64 {
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
		Topic: r.cmd.Topic, ParkLimit: r.cmd.ParkLimit, Actor: r.cmd.ActorName(), Remove: r.cmd.Remove, Partial: r.cmd.Partial,
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

// rebuildDocument is the outcome of a rebuild in JSON.
type rebuildDocument struct {
	Records     int64                           `json:"records"`
	Checked     int64                           `json:"checked"`
	Matched     int64                           `json:"matched"`
	Different   int64                           `json:"different"`
	LeftAlone   int64                           `json:"left_alone"`
	Kinds       map[readmodel.RebuildKind]int64 `json:"kinds"`
	Differences []rebuildDifferenceDocument     `json:"differences"`
	Changed     int64                           `json:"changed"` // replaced and removed
	Replaced    int64                           `json:"replaced"`
	Removed     int64                           `json:"removed"`
	Result      *string                         `json:"result"`
}

type rebuildDifferenceDocument struct {
	AccountID      string                `json:"account_id"`
	Kind           readmodel.RebuildKind `json:"kind"`
	Version        *int64                `json:"version"`
	RebuiltVersion *int64                `json:"rebuilt_version"`
}

// resultRebuilt is the result of a rebuild that was done.
const resultRebuilt = "rebuilt"

// print says what was found and done; a nil changed means that nothing was to be done.
func (c *Cmd) print(std *output.Streams, records int64, r *readmodel.RebuildReport, changed *readmodel.Swapped) error {
	if rest := r.Different() + r.LeftAlone() - int64(len(r.Differences)); rest > 0 {
		_, _ = fmt.Fprintf(std.Err, "%d more differences are not listed, see --limit\n", rest)
	}
	if c.JSON() {
		return output.PrintJSON(std.Out, rebuiltDocument(records, r, changed))
	}
	if err := printDifferences(std, records, r); err != nil {
		return err
	}
	_, err := fmt.Fprintln(std.Out, c.outcome(r, changed))
	return err
}

// outcome is what was done, or would be, in words.
func (c *Cmd) outcome(r *readmodel.RebuildReport, changed *readmodel.Swapped) string {
	unknown, remedy := r.Kinds[readmodel.RebuildUnknown], ", add --yes to do it"
	if c.Yes {
		remedy = ""
	}
	var text string
	switch {
	case changed != nil:
		text = fmt.Sprintf("%d accounts were replaced and %d removed", changed.Replaced, changed.Removed)
	case r.Different() == 0:
		return "there is nothing to change"
	case c.Remove:
		text = fmt.Sprintf("would replace %d accounts and remove %d; nothing was changed%s", r.Different()-unknown, unknown, remedy)
	default:
		text = fmt.Sprintf("would replace %d accounts; nothing was changed%s", r.Different()-unknown, remedy)
	}
	if moved := r.Kinds[readmodel.RebuildMoved]; moved > 0 {
		text += fmt.Sprintf("\n%d accounts were written by others meanwhile and left alone: run it again, if need be while the consumers are stopped", moved)
	}
	if unknown > 0 && !c.Remove {
		text += fmt.Sprintf("\n%d accounts the topic has no event of stay as they are: --remove removes them", unknown)
	}
	return text
}

func rebuiltDocument(records int64, r *readmodel.RebuildReport, changed *readmodel.Swapped) rebuildDocument {
	d := rebuildDocument{
		Records: records, Checked: r.Checked, Matched: r.Matched, Different: r.Different(), LeftAlone: r.LeftAlone(),
		Kinds: map[readmodel.RebuildKind]int64{}, Differences: []rebuildDifferenceDocument{},
	}
	for _, kind := range readmodel.RebuildKinds() {
		d.Kinds[kind] = r.Kinds[kind]
	}
	for _, x := range r.Differences {
		d.Differences = append(d.Differences, rebuildDifferenceDocument{x.AccountID, x.Kind, x.Version, x.Rebuilt})
	}
	if changed != nil {
		d.Replaced, d.Removed, d.Result = changed.Replaced, changed.Removed, output.OrNull(resultRebuilt)
		d.Changed = d.Replaced + d.Removed
	}
	return d
}

func printDifferences(std *output.Streams, records int64, r *readmodel.RebuildReport) error {
	_, err := fmt.Fprintf(std.Out, "%d records read, %d accounts compared: %d are right, %d are not, %d were left alone\n",
		records, r.Checked, r.Matched, r.Different(), r.LeftAlone())
	if err != nil || len(r.Differences) == 0 {
		return err
	}
	t := output.NewTable(std.Out, "ACCOUNT", output.Left("ACCOUNT", 20), output.Left("KIND", 9),
		output.Right("VERSION", 10), output.Right("REBUILT", 10))
	t.Header()
	for i := range r.Differences {
		d := &r.Differences[i]
		t.Row(d.AccountID, string(d.Kind), output.VersionText(d.Version), output.VersionText(d.Rebuilt))
	}
	return t.Flush()
}
