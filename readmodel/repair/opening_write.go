package repair

import (
	"context"
	"errors"

	"projector/projection"
	"projector/readmodel"
	"projector/readmodel/accountdb"
	"projector/readmodel/accounts"
	"projector/sql"
)

// applied returns the openings that are applied according to the decisions.
func applied(openings []Opening, decisions []projection.Decision) []Opening {
	var some []Opening
	for i := range decisions {
		if decisions[i].Outcome == projection.Applied {
			some = append(some, openings[i])
		}
	}
	return some
}

// write stores the openings and their audit rows, in the transaction that writes the balances.
func (o *Openings) write(ctx context.Context, tx *readmodel.Tx, openings []Opening) error {
	if len(openings) == 0 {
		return nil
	}
	readmodel.QueueActions(tx, o.actions(openings))
	if !o.again && len(openings) >= readmodel.CopyLeast {
		err := o.copy(ctx, tx, openings)
		o.again = errors.Is(err, projection.ErrStale)
		return err
	}
	rows := make([]accounts.Row, len(openings))
	for i := range openings {
		x := &openings[i]
		rows[i] = accounts.Row{AccountID: x.AccountID, Account: projection.Account{
			Version: x.Version, Balance: x.Balance, Currency: x.Currency, Closed: x.Closed, LastEventID: x.LastEventID,
			LastEventAt: projection.NoTime,
		}}
	}
	tx.Queue(sql.Query("opening_insert"), append(accountdb.BalanceColumns(rows), o.by.Source, o.by.Actor, o.by.Reason)...)
	return tx.Send(ctx)
}

// copy writes openings by COPY. COPY fails if one of the accounts has an opening. After that,
// openings are written by INSERT.
func (o *Openings) copy(ctx context.Context, tx *readmodel.Tx, openings []Opening) error {
	rows := readmodel.NewCopyRows(9, len(openings), 80+len(o.by.Source)+len(o.by.Actor)+len(o.by.Reason))
	for i := range openings {
		x := &openings[i]
		rows.Begin()
		rows.Text(x.AccountID)
		rows.Int8(x.Version)
		rows.Money(x.Balance, x.Currency.Digits())
		rows.TextOrNull(x.Currency.Code())
		rows.Text(accountdb.Status(x.Closed))
		rows.TextOrNull(x.LastEventID)
		rows.Text(o.by.Source)
		rows.Text(o.by.Actor)
		rows.Text(o.by.Reason)
	}
	return tx.Copy(ctx, sql.Query("copy_opening"), rows)
}
