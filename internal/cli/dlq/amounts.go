package dlq

import (
	"encoding/json"
	"fmt"

	"projector/internal/cli/output"
	"projector/internal/replay"
	"projector/projection/event"
	"projector/readmodel"
)

// amountsDocument is what whoever approves a replay sees of an event: amounts with their sign,
// and the balance of its account before and after it. What is not known is null.
type amountsDocument struct {
	Currency      *string      `json:"currency"`
	OldAmount     *json.Number `json:"old_amount"`
	NewAmount     *json.Number `json:"new_amount"`
	BalanceBefore *json.Number `json:"balance_before"`
	BalanceAfter  *json.Number `json:"balance_after"`
	OldValue      *string      `json:"old_value"`
	NewValue      *string      `json:"new_value"`
}

// amounts are those of an item whose plan was made.
func amounts(item *replay.Item) *amountsDocument {
	d := &amountsDocument{NewAmount: signed(&item.Decoded), OldAmount: signed(&item.Decoded)}
	currency := item.Decoded.Event.Currency
	if item.Value != "" { // it was read from a file
		d.OldAmount = nil
		if old := item.InTopic; old != nil {
			d.OldAmount, d.OldValue = signed(&old.Decoded), new(output.BytesText(old.Value))
		}
	}
	if item.Altered() && item.Entry.Value != nil {
		d.NewValue = new(output.BytesText(item.Entry.Value))
	}
	if balance, known := item.Balance(); known && item.Entry.Projection == readmodel.BalanceName {
		if balance.Currency != (event.Currency{}) {
			currency = balance.Currency
		}
		d.BalanceBefore = new(json.Number(event.FormatAmount(balance.Before, currency)))
		d.BalanceAfter = new(json.Number(event.FormatAmount(balance.After, currency)))
	}
	d.Currency = output.OrNull(currency.Code())
	return d
}

// signed is the amount of an event, negative of a debit; nil when there is none to read.
func signed(d *event.Decoded) *json.Number {
	ev := &d.Event
	if d.Identity != event.Identified || d.Fault != nil || ev.Amount == 0 {
		return nil
	}
	return new(json.Number(event.FormatAmount(ev.Signed(), ev.Currency)))
}

// amountRow is an event with its amounts in the table for whoever approves it.
type amountRow struct {
	item *replay.Item
	*amountsDocument
}

// Document implements output.Row.
func (r amountRow) Document() any { return r.amountsDocument }

// Cells implements output.Row.
func (r amountRow) Cells() []string {
	text := func(n *json.Number) string {
		if n == nil {
			return output.OrDash("")
		}
		return n.String()
	}
	currency := output.OrDash("")
	if r.Currency != nil {
		currency = *r.Currency
	}
	e := &r.item.Entry
	return []string{
		output.OrDash(e.AccountID), output.VersionText(e.Received), text(r.OldAmount), text(r.NewAmount), currency,
		text(r.BalanceBefore), text(r.BalanceAfter),
	}
}

// printAmounts prints amounts and balances, and both values of each event that was altered.
func (c *replayOptions) printAmounts(std *output.Streams, r *replay.Replay) error {
	rows := c.Rows(std.Out, "ACCOUNT", output.Left("ACCOUNT", 14), output.Right("VERSION", 7), output.Right("OLD AMOUNT", 12),
		output.Right("NEW AMOUNT", 12), output.Left("CURRENCY", 8), output.Right("BALANCE BEFORE", 14), output.Right("BALANCE AFTER", 14))
	for _, item := range r.Items {
		if err := rows.Add(amountRow{item, amounts(item)}); err != nil {
			return err
		}
	}
	if err := rows.End(""); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(std.Out, "balances are those around the event; what waits for it is applied after it")
	for _, item := range r.Items {
		if !item.Altered() {
			continue
		}
		d := amounts(item)
		e := &item.Entry
		_, _ = fmt.Fprintf(std.Out, "%s version %s, dead letter %s\n", output.Printable(e.AccountID), output.VersionText(e.Received), placeOf(e))
		printValue(std, "old value", d.OldValue, "not in the DLQ topic")
		printValue(std, "new value", d.NewValue, "not kept: the read model has passed this version")
	}
	return nil
}

func printValue(std *output.Streams, name string, value *string, none string) {
	text := none
	if value != nil {
		text = output.Printable(*value)
	}
	_, _ = fmt.Fprintf(std.Out, "  %-16s %s\n", name, text)
}
