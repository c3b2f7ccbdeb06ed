package cli

import (
	"fmt"

	"projector/readmodel"
)

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
func (c *rebuildCmd) print(std *streams, records int64, r *readmodel.RebuildReport, changed *readmodel.Swapped) error {
	if rest := r.Different() + r.LeftAlone() - int64(len(r.Differences)); rest > 0 {
		_, _ = fmt.Fprintf(std.err, "%d more differences are not listed, see --limit\n", rest)
	}
	if c.json() {
		return printJSON(std.out, rebuiltDocument(records, r, changed))
	}
	if err := printDifferences(std, records, r); err != nil {
		return err
	}
	_, err := fmt.Fprintln(std.out, c.outcome(r, changed))
	return err
}

// outcome is what was done, or would be, in words.
func (c *rebuildCmd) outcome(r *readmodel.RebuildReport, changed *readmodel.Swapped) string {
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
		d.Replaced, d.Removed, d.Result = changed.Replaced, changed.Removed, orNull(resultRebuilt)
		d.Changed = d.Replaced + d.Removed
	}
	return d
}

func printDifferences(std *streams, records int64, r *readmodel.RebuildReport) error {
	_, err := fmt.Fprintf(std.out, "%d records read, %d accounts compared: %d are right, %d are not, %d were left alone\n",
		records, r.Checked, r.Matched, r.Different(), r.LeftAlone())
	if err != nil || len(r.Differences) == 0 {
		return err
	}
	t := newTable(std.out, "ACCOUNT", column{name: "ACCOUNT", width: 20}, column{name: "KIND", width: 9},
		column{name: "VERSION", width: 10, right: true}, column{name: "REBUILT", width: 10, right: true})
	t.header()
	for i := range r.Differences {
		d := &r.Differences[i]
		t.row(d.AccountID, string(d.Kind), versionText(d.Version), versionText(d.Rebuilt))
	}
	return t.flush()
}
