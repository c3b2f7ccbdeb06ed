package dlq

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"projector/internal/cli/output"
	"projector/readmodel"
)

// replayDocument is a dead letter with what a replay would do, or did.
type replayDocument struct {
	letterDocument
	Plan   string  `json:"plan"`
	Result *string `json:"result,omitempty"`
}

// print prints the plan and, when it was carried out, the results.
func (r *replay) print() error {
	if r.cmd.JSON() {
		return r.printLines()
	}
	if err := r.printTable(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(r.std.Out, r.summary())
	return err
}

func (r *replay) printLines() error {
	lines := output.NewJSONLines(r.std.Out)
	for _, item := range r.items {
		d := replayDocument{letterDocument: item.document(), Plan: item.plan}
		if r.cmd.Yes {
			d.Result = output.OrNull(cmp.Or(item.result, "not_done"))
		}
		d.Message = item.reason()
		if err := lines.Write(d); err != nil {
			return err
		}
	}
	return lines.Flush()
}

func (r *replay) printTable() error {
	name := "PLAN"
	if r.cmd.Yes {
		name = "RESULT"
	}
	t := output.NewTable(r.std.Out, "ACCOUNT", output.Column{Name: name, Width: 10}, output.Column{Name: "ACCOUNT", Width: 14},
		output.Column{Name: "VERSION", Width: 7, Right: true}, output.Column{Name: "CLASS", Width: 20}, output.Column{Name: "DLQ", Width: 9},
		output.Column{Name: "WHY", Width: 30})
	for i, item := range r.items {
		if i == 0 {
			t.Header()
		}
		what := item.plan
		if r.cmd.Yes {
			what = cmp.Or(item.result, "not_done")
		}
		t.Row(what, output.OrDash(item.Entry.AccountID), output.VersionText(item.Entry.Received), string(item.Entry.Class),
			output.PlaceText(item.Entry.DLQPartition, item.Entry.DLQOffset), item.reason())
	}
	return t.Flush()
}

// reason is why the record is, or stays, a dead letter.
func (i *replayItem) reason() string {
	switch {
	case i.why != "":
		return i.why
	case i.repair != nil && i.repair.Verdict.Message != "":
		return i.repair.Verdict.Message
	default:
		return i.Entry.Message
	}
}

// summary counts the plans or the results.
func (r *replay) summary() string {
	counts := map[string]int{}
	for _, item := range r.items {
		if r.cmd.Yes {
			counts[cmp.Or(item.result, "not_done")]++
		} else {
			counts[item.plan]++
		}
	}
	var parts []string
	for _, name := range []string{
		planApply, string(readmodel.EffectApplied), readmodel.ResultPublished, planDuplicate, planWaiting, planPoison,
		readmodel.ResultRefused, "not_done",
	} {
		if counts[name] > 0 {
			parts = append(parts, strconv.Itoa(counts[name])+" "+name)
		}
	}
	text := cmp.Or(strings.Join(parts, ", "), r.nothing("nothing to replay"), "nothing to replay in the other partitions")
	if !r.cmd.Yes && len(r.items) > 0 {
		text += "; nothing was changed, add --yes to do it"
	}
	return text
}
