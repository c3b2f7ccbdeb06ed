package cli

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

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
	if r.cmd.json() {
		return r.printLines()
	}
	if err := r.printTable(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(r.std.out, r.summary())
	return err
}

func (r *replay) printLines() error {
	lines := newJSONLines(r.std.out)
	for _, item := range r.items {
		d := replayDocument{letterDocument: item.document(), Plan: item.plan}
		if r.cmd.Yes {
			d.Result = orNull(cmp.Or(item.result, "not_done"))
		}
		d.Message = item.reason()
		if err := lines.write(d); err != nil {
			return err
		}
	}
	return lines.flush()
}

func (r *replay) printTable() error {
	name := "PLAN"
	if r.cmd.Yes {
		name = "RESULT"
	}
	t := newTable(r.std.out, "ACCOUNT", column{name: name, width: 10}, column{name: "ACCOUNT", width: 14},
		column{name: "VERSION", width: 7, right: true}, column{name: "CLASS", width: 20}, column{name: "DLQ", width: 9},
		column{name: "WHY", width: 30})
	for i, item := range r.items {
		if i == 0 {
			t.header()
		}
		what := item.plan
		if r.cmd.Yes {
			what = cmp.Or(item.result, "not_done")
		}
		t.row(what, orDash(item.entry.AccountID), versionText(item.entry.Received), string(item.entry.Class),
			placeText(item.entry.DLQPartition, item.entry.DLQOffset), item.reason())
	}
	return t.flush()
}

// reason is why the record is, or stays, a dead letter.
func (i *replayItem) reason() string {
	switch {
	case i.why != "":
		return i.why
	case i.repair != nil && i.repair.Verdict.Message != "":
		return i.repair.Verdict.Message
	default:
		return i.entry.Message
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
