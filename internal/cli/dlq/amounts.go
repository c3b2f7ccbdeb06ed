package dlq

import (
	"encoding/json"

	"projector/internal/cli/output"
	"projector/internal/replay"
	"projector/projection/event"
	"projector/readmodel"
)

// amountsDocument has the amounts of an event, for a user who may approve the change. It contains
// signed amounts, and the account's balance before and after the event. Unknown values are null.
type amountsDocument struct {
	Currency      *string      `json:"currency"`
	OldAmount     *json.Number `json:"old_amount"` // amount of the dead letter
	NewAmount     *json.Number `json:"new_amount"` // amount of the event that is applied
	BalanceBefore *json.Number `json:"balance_before"`
	BalanceAfter  *json.Number `json:"balance_after"`
	OldValue      *string      `json:"old_value"`
	NewValue      *string      `json:"new_value"`
}

func replayedAmounts(item *replay.Item) *amountsDocument {
	d := amountsOf(&item.Event, &item.Decoded, item.Entry.Projection == readmodel.BalanceName)
	d.OldAmount = d.NewAmount
	if item.Value != "" { // the event was read from a file
		d.OldAmount = nil
		if old := item.InTopic; old != nil {
			d.OldAmount, d.OldValue = signed(&old.Decoded), new(output.BytesText(old.Value))
		}
	}
	if item.Altered() && item.Entry.Value != nil {
		d.NewValue = new(output.BytesText(item.Entry.Value))
	}
	return d
}

func fetchedAmounts(m *replay.Missing) *amountsDocument {
	return amountsOf(&m.Event, &m.Record.Decoded, true)
}

// amountsOf returns the amount of an event and, if its projection has balances, the balances before
// and after it.
func amountsOf(planned *replay.Event, of *event.Decoded, balances bool) *amountsDocument {
	d, currency := &amountsDocument{NewAmount: signed(of)}, of.Event.Currency
	if balance, known := planned.Balance(); known && balances {
		if balance.Currency != (event.Currency{}) {
			currency = balance.Currency
		}
		d.BalanceBefore = new(json.Number(event.FormatAmount(balance.Before, currency)))
		d.BalanceAfter = new(json.Number(event.FormatAmount(balance.After, currency)))
	}
	d.Currency = output.OrNull(currency.Code())
	return d
}

// signed returns the amount of an event, negative for a debit. It returns nil if there is no
// readable amount.
func signed(d *event.Decoded) *json.Number {
	ev := &d.Event
	if d.Identity != event.Identified || d.Fault != nil || ev.Amount == 0 {
		return nil
	}
	return new(json.Number(event.FormatAmount(ev.Signed(), ev.Currency)))
}

// amountRow is an event with its amounts, in the table for a user who may approve the change.
type amountRow struct {
	account string
	version *int64
	*amountsDocument
}

func printAmounts(std *output.Streams, amounts []amountRow) error {
	t := output.NewTable(std.Out, "ACCOUNT", output.Left("ACCOUNT", 14), output.Right("VERSION", 7), output.Right("OLD AMOUNT", 12),
		output.Right("NEW AMOUNT", 12), output.Left("CURRENCY", 8), output.Right("BALANCE BEFORE", 14), output.Right("BALANCE AFTER", 14))
	for _, a := range amounts {
		t.Row(a.account, a.version, a.OldAmount, a.NewAmount, a.Currency, a.BalanceBefore, a.BalanceAfter)
	}
	if err := t.Flush(); err != nil || len(amounts) == 0 {
		return err
	}
	std.Printf("balances are those around the event; what waits for it is applied after it\n")
	return nil
}

// printAmounts prints amounts and balances, and both values of each event that was altered.
func (p *replayPlan) printAmounts() error {
	std := p.on.Std
	var rows []amountRow
	for _, item := range p.replay.Items {
		rows = append(rows, amountRow{item.Entry.AccountID, item.Entry.Received, replayedAmounts(item)})
	}
	if err := printAmounts(std, rows); err != nil {
		return err
	}
	for i, item := range p.replay.Items {
		if !item.Altered() {
			continue
		}
		e := &item.Entry
		std.Printf("%s version %s, dead letter %s\n", output.Printable(e.AccountID), output.OrDash(e.Received), placeOf(e))
		printValue(std, "old value", rows[i].OldValue, "not in the DLQ topic")
		printValue(std, "new value", rows[i].NewValue, "not kept: the read model has passed this version")
	}
	return nil
}

func printValue(std *output.Streams, name string, value *string, none string) {
	text := none
	if value != nil {
		text = output.Printable(*value)
	}
	std.Printf("  %-16s %s\n", name, text)
}
