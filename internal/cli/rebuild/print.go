package rebuild

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"projector/internal/cli/change"
	"projector/internal/cli/output"
	"projector/readmodel/rebuild"
)

type rebuildDocument struct {
	Projection  string                 `json:"projection"`
	Records     int64                  `json:"records"`
	Checked     int64                  `json:"checked"`
	Matched     int64                  `json:"matched"`
	Different   int64                  `json:"different"`
	LeftAlone   int64                  `json:"left_alone"`
	Kinds       map[rebuild.Kind]int64 `json:"kinds"`
	Markers     int64                  `json:"markers"` // markers that the inbox lacks
	Differences []any                  `json:"differences"`
	Changed     int64                  `json:"changed"` // rows that are replaced or removed
	Replaced    int64                  `json:"replaced"`
	Removed     int64                  `json:"removed"`
	Result      *string                `json:"result"`
}

type accountDifference struct {
	AccountID      string       `json:"account_id"`
	Kind           rebuild.Kind `json:"kind"`
	Version        *int64       `json:"version"`
	RebuiltVersion *int64       `json:"rebuilt_version"`
	*change.Balances
}

const resultRebuilt = "rebuilt"

// print prints what was found and changed.
func (r *rebuilding) print() error {
	if rest := r.report.Different() + r.report.LeftAlone() - int64(len(r.report.Differences)); rest > 0 {
		r.on.Std.Notef("%d more differences are not listed, see --limit\n", rest)
	}
	if r.cmd.JSON() {
		return output.PrintJSON(r.on.Std.Out, r.document())
	}
	if err := r.printDifferences(); err != nil {
		return err
	}
	r.on.Std.Printf("%s\n", r.outcome())
	return nil
}

func (r *rebuilding) outcome() string {
	report, changed := &r.report, r.swapped
	unknown, of := report.Kinds[rebuild.Unknown], r.nouns()
	var text string
	switch {
	case changed != nil:
		text = fmt.Sprintf("%s inserted or replaced, %d removed", output.Counted(changed.Replaced, r.noun()), changed.Removed)
	case report.Different() == 0 && report.Markers == 0 && r.replaces() == "":
		return "there is nothing to change"
	case r.cmd.Remove:
		text = fmt.Sprintf("would insert or replace %s and remove %d; %s", output.Counted(report.Different()-unknown, r.noun()), unknown, r.on.NothingChanged())
	default:
		text = fmt.Sprintf("would insert or replace %s; %s", output.Counted(report.Different()-unknown, r.noun()), r.on.NothingChanged())
	}
	if changed != nil && changed.Markers > 0 {
		text += fmt.Sprintf("\n%d events were marked in the inbox, so that none is counted again", changed.Markers)
	} else if changed == nil && report.Markers > 0 {
		text += fmt.Sprintf("\nwould mark %d events in the inbox, so that none is counted again", report.Markers)
	}
	if what := r.replaces(); what != "" && changed != nil {
		text += fmt.Sprintf("\nthe stored %s was replaced", what)
	} else if what != "" {
		text += fmt.Sprintf("\nwould replace the stored %s", what)
	}
	if moved := report.Kinds[rebuild.Moved]; moved > 0 {
		text += fmt.Sprintf("\n%d %s were repaired by people since the rebuild began and left alone: run it again", moved, of)
	}
	if unknown > 0 && !r.cmd.Remove {
		text += fmt.Sprintf("\n%d %s the topic has no event of stay as they are: --remove removes them", unknown, of)
	}
	return text
}

// replaces names what the rebuild replaces in addition to rows, or returns "".
func (r *rebuilding) replaces() string {
	switch {
	case r.changed != nil && r.remapped:
		return "mapping and projection file"
	case r.changed != nil:
		return "projection file"
	case r.remapped:
		return "mapping"
	default:
		return ""
	}
}

func (r *rebuilding) document() rebuildDocument {
	report := &r.report
	d := rebuildDocument{
		Projection: r.cmd.kind.Name(), Records: r.build.Records(), Checked: report.Checked, Matched: report.Matched,
		Different: report.Different(), LeftAlone: report.LeftAlone(), Markers: report.Markers,
		Kinds: map[rebuild.Kind]int64{}, Differences: []any{},
	}
	for _, kind := range rebuild.Kinds() {
		d.Kinds[kind] = report.Kinds[kind]
	}
	for i := range report.Differences {
		var balances *change.Balances
		if r.balances != nil {
			b := &r.balances[i]
			balances = &change.Balances{Currency: b.Currency, Before: output.NumberOrNull(b.Before), After: output.NumberOrNull(b.After)}
		}
		d.Differences = append(d.Differences, differenceDocument(&report.Differences[i], balances))
	}
	if r.swapped != nil {
		d.Replaced, d.Removed, d.Result = r.swapped.Replaced, r.swapped.Removed, output.OrNull(resultRebuilt)
		d.Changed = d.Replaced + d.Removed
	}
	return d
}

// differenceDocument describes a difference with its account or the key of its row.
func differenceDocument(x *rebuild.Difference, balances *change.Balances) any {
	if x.Key == nil {
		return accountDifference{x.ID, x.Kind, x.Version, x.Rebuilt, balances}
	}
	return json.RawMessage(fmt.Sprintf(`%s,"kind":%q}`, bytes.TrimSuffix(x.Key, []byte("}")), x.Kind))
}

func (r *rebuilding) printDifferences() error {
	report := &r.report
	r.on.Std.Printf("%s read, %s compared: %d are right, %d are not, %d were left alone\n",
		output.Counted(r.build.Records(), "record"), output.Counted(report.Checked, r.noun()), report.Matched, report.Different(), report.LeftAlone())
	if len(report.Differences) == 0 {
		return nil
	}
	if report.Differences[0].Key != nil {
		return r.printRows()
	}
	columns := []output.Column{output.Left("ACCOUNT", 20), output.Left("KIND", 9), output.Right("VERSION", 10), output.Right("REBUILT", 10)}
	if r.balances != nil {
		columns = append(columns, change.BalanceColumns()...)
	}
	t := output.NewTable(r.on.Std.Out, "ACCOUNT", columns...)
	for i := range report.Differences {
		d := &report.Differences[i]
		cells := []any{d.ID, d.Kind, d.Version, d.Rebuilt}
		if r.balances != nil {
			b := &r.balances[i]
			cells = append(cells, b.Before, b.After, b.Currency)
		}
		t.Row(cells...)
	}
	return t.Flush()
}

func (r *rebuilding) printRows() error {
	t := output.NewTable(r.on.Std.Out, "ROW", output.Left("KIND", 9), output.Left("ROW", 40))
	for i := range r.report.Differences {
		d := &r.report.Differences[i]
		t.Row(d.Kind, strings.Trim(d.ID, "()"))
	}
	return t.Flush()
}
