package cli

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"projector/readmodel"
)

// shownParked is how many parked events are printed for people; JSON has them all.
const shownParked = 20

// printAccount prints an account for people.
func printAccount(w io.Writer, view *readmodel.AccountView) error {
	out := bufio.NewWriter(w)
	field := func(name, text string) { _, _ = fmt.Fprintf(out, "%-14s %s\n", name, printable(text)) }
	field("account", view.ID)
	if b := view.Balance; b != nil {
		field("balance", b.Balance+" "+orDash(b.Currency))
		field("version", strconv.FormatInt(b.Version, 10))
		field("status", b.Status)
		field("last event", orDash(b.LastEventID))
		if b.LastEventAt != nil {
			field("last event at", timeText(*b.LastEventAt))
		}
	} else {
		field("balance", "- (its first version is missing)")
	}
	printHold(field, view.Hold)
	if len(view.Parked) > 0 {
		if err := printParked(out, view.Parked); err != nil {
			return err
		}
	}
	return out.Flush()
}

func printHold(field func(name, text string), h *readmodel.Hold) {
	if h == nil {
		field("stale", "no")
		return
	}
	field("stale", fmt.Sprintf("yes: waits for version %d (%s), since %s", h.Expected, h.Class, timeText(h.Since)))
	field("waiting events", strconv.FormatInt(h.Waiting, 10))
	if h.Beyond > 0 {
		field("", fmt.Sprintf("%d of them are beyond the park limit and in the DLQ only: "+
			"replay them with `projector dlq replay --account ID` when the hole is filled", h.Beyond))
	}
}

func printParked(w io.Writer, parked []readmodel.ParkedView) error {
	t := newTable(w, "EVENT", column{name: "VERSION", width: 8}, column{name: "CLASS", width: 20},
		column{name: "RECORD", width: 24}, column{name: "EVENT"})
	t.header()
	for _, p := range parked[:min(len(parked), shownParked)] {
		t.row(strconv.FormatInt(p.Version, 10), string(p.Class),
			fmt.Sprintf("%s %d/%d", p.Topic, p.Partition, p.Offset), p.EventID)
	}
	if more := len(parked) - shownParked; more > 0 {
		t.row(fmt.Sprintf("… and %d more", more))
	}
	return t.flush()
}
