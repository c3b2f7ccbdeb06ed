package main

import (
	"fmt"

	"projector/readmodel"
)

// rebuildDocument is the outcome of a rebuild in JSON.
type rebuildDocument struct {
	Records     int64                       `json:"records"`
	Checked     int64                       `json:"checked"`
	Matched     int64                       `json:"matched"`
	Different   int64                       `json:"different"`
	LeftAlone   int64                       `json:"left_alone"`
	Differences []rebuildDifferenceDocument `json:"differences"`
	Changed     int64                       `json:"changed"`
	Result      *string                     `json:"result"`
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
func (c *rebuildCmd) print(std *streams, records int64, r *readmodel.RebuildReport, changed *int64) error {
	if rest := r.Different + r.LeftAlone - int64(len(r.Differences)); rest > 0 {
		_, _ = fmt.Fprintf(std.err, "%d more differences are not listed, see --limit\n", rest)
	}
	if c.json() {
		return printJSON(std.out, rebuiltDocument(records, r, changed))
	}
	if err := printDifferences(std, records, r); err != nil {
		return err
	}
	var err error
	switch {
	case changed == nil && r.Different == 0:
		_, err = fmt.Fprintln(std.out, "there is nothing to change")
	case changed == nil:
		_, err = fmt.Fprintf(std.out, "would replace %d accounts; nothing was changed, add --yes to do it\n", r.Different)
	default:
		_, err = fmt.Fprintf(std.out, "%d accounts were replaced\n", *changed)
	}
	return err
}

func rebuiltDocument(records int64, r *readmodel.RebuildReport, changed *int64) rebuildDocument {
	d := rebuildDocument{
		Records: records, Checked: r.Checked, Matched: r.Matched, Different: r.Different, LeftAlone: r.LeftAlone,
		Differences: []rebuildDifferenceDocument{},
	}
	for _, x := range r.Differences {
		d.Differences = append(d.Differences, rebuildDifferenceDocument{x.AccountID, x.Kind, x.Version, x.Rebuilt})
	}
	if changed != nil {
		d.Changed, d.Result = *changed, orNull(resultRebuilt)
	}
	return d
}

func printDifferences(std *streams, records int64, r *readmodel.RebuildReport) error {
	_, err := fmt.Fprintf(std.out, "%d records read, %d accounts compared: %d are right, %d are not, %d were left alone\n",
		records, r.Checked, r.Matched, r.Different, r.LeftAlone)
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
