package output

import (
	"fmt"
	"io"
	"strconv"

	"projector/readmodel/accountdb"
)

// shownParked is how many parked events the text output shows. The JSON output has all of them.
const shownParked = 20

// PrintAccount prints the state of an account for people. The parameter again has the flags that a
// command about the same account must repeat, each after a space.
func PrintAccount(std *Streams, view *accountdb.AccountView, again string) error {
	field := func(name, text string) { std.Printf("%-14s %s\n", name, Printable(text)) }
	field("account", view.ID)
	if b := view.Balance; b != nil {
		if b.Balance != "" {
			field("balance", b.Balance+" "+OrDash(b.Currency))
		}
		field("version", strconv.FormatInt(b.Version, 10))
		if b.Status != "" {
			field("status", b.Status)
		}
		field("last event", OrDash(b.LastEventID))
		if b.LastEventAt != nil {
			field("last event at", TimeText(*b.LastEventAt))
		}
	} else {
		field("version", "- (its first version is missing)")
	}
	printHold(field, view.Hold, again)
	if len(view.Parked) == 0 {
		return nil
	}
	return printParked(std.Out, view.Parked)
}

func printHold(field func(name, text string), h *accountdb.Hold, again string) {
	if h == nil {
		field("stale", "no")
		return
	}
	field("stale", fmt.Sprintf("yes: waits for version %d (%s)", h.Expected, h.Class))
	field("since", SecondText(h.Since))
	field("waiting events", strconv.FormatInt(h.Waiting, 10))
	if h.Beyond > 0 {
		field("", fmt.Sprintf("%d of them are beyond the park limit: they are read again when their turn comes, "+
			"or `projector dlq replay --account ID%s` applies them then", h.Beyond, again))
	}
}

func printParked(w io.Writer, parked []accountdb.ParkedView) error {
	t := NewTable(w, "EVENT", Left("VERSION", 8), Left("CLASS", 20),
		Left("RECORD", 24), Left("EVENT", 0).Optional())
	for _, p := range parked[:min(len(parked), shownParked)] {
		t.Row(p.Version, p.Class, p.Topic+" "+PlaceText(p.Partition, p.Offset), p.EventID)
	}
	if more := len(parked) - shownParked; more > 0 {
		t.Row(fmt.Sprintf("… and %d more", more))
	}
	return t.Flush()
}
