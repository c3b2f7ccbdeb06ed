package repair

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/accountdb"
	"projector/readmodel/accounts"
	"projector/sql"
)

// PlanUnskip returns what an Unskip would do now, or a *SkipRefused.
func (r *Repair) PlanUnskip(ctx context.Context, s Skip) (plan SkipPlan, err error) {
	err = readmodel.Patiently(ctx, func(attempt context.Context) error {
		known, before, of, err := r.decideUnskip(attempt, r.db(), s)
		plan = SkipPlan{
			Before: r.stateOf(known.Account, waiting(&known)), After: r.stateOf(before, waiting(&known) || of != SkippedEvent{}), Event: of,
		}
		return err
	})
	return plan, err
}

// Unskip undoes the last skip of an account, if nothing was applied after the skip.
func (r *Repair) Unskip(ctx context.Context, s Skip) error {
	err := r.transact(ctx, func(attempt context.Context, tx *accountdb.Tx) error {
		return r.unskip(attempt, tx, s)
	})
	if err != nil {
		return r.failed(ctx, readmodel.ActionUnskip, s, err)
	}
	return nil
}

func (r *Repair) unskip(ctx context.Context, tx *accountdb.Tx, s Skip) error {
	readmodel.QueueFence(tx.Tx, tx.Tables.Projection, nil, nil)
	if err := lockAccounts(ctx, tx, []string{s.AccountID}); err != nil {
		return err
	}
	known, before, of, err := r.decideUnskip(ctx, tx.DB(), s)
	if err != nil {
		return err
	}
	if s.changed(of) {
		return s.refuseUnskip("what is known of version %d has changed since the plan", s.Version)
	}
	removed := int64(0)
	tx.Queue(tx.Tables.Query("unskip_remove"), s.AccountID, s.Version).
		Exec(func(tag pgconn.CommandTag) error { removed = tag.RowsAffected(); return nil })
	changes := &accounts.Changes{}
	if before.Version >= r.cfg.FirstVersion { // otherwise the account had no row
		changes.Rows = []accounts.Row{{AccountID: s.AccountID, Account: before}}
	}
	switch {
	case of.Place.Topic != "":
		changes.Parks = []*projection.Parked{parkedAgain(s, of)}
	case of.Class != "" && !known.Overflowed: // the event is beyond the park limit; a stored range would lose the place of its events
		changes.Overflows = []accounts.Overflow{{
			AccountID: s.AccountID, Version: s.Version, Expected: s.Version, Place: projection.RecordRef{Partition: projection.NoPartition},
		}}
	}
	action := r.action(readmodel.ActionUnskip, readmodel.ResultUnskipped, s, of)
	action.PreviousEventID = known.Account.LastEventID
	if err := r.write(ctx, tx, changes, []readmodel.Action{action}); err != nil {
		return err
	}
	if err := tx.Send(ctx); err != nil {
		return err
	}
	if removed != 1 {
		return projection.ErrStale
	}
	return nil
}

// parkedAgain returns the skipped event as a parked event. Its payload is only in the DLQ topic, so
// it cannot be applied. An event with a payload can replace it.
func parkedAgain(s Skip, of SkippedEvent) *projection.Parked {
	p := &projection.Parked{Class: of.Class, Expected: s.Version}
	if p.Class == event.VersionGap {
		p.Class = event.MalformedPayload
	}
	p.Decoded.Event.AccountID, p.Decoded.Event.Version, p.Decoded.Event.ID = s.AccountID, s.Version, of.EventID
	p.Record.Topic, p.Record.Partition, p.Record.Offset = of.Place.Topic, of.Place.Partition, of.Place.Offset
	p.Record.Timestamp = projection.NoTimestamp
	return p
}

// refuseUnskip returns a *SkipRefused. The audit trail also has its reason.
func (s Skip) refuseUnskip(format string, args ...any) error {
	why := fmt.Sprintf(format, args...)
	return &SkipRefused{
		text:    fmt.Sprintf("account %q: %s", s.AccountID, why),
		audited: readmodel.Action{Reason: s.Reason}.Because(why).Reason,
	}
}

// decideUnskip reads the account, its state before the last skip, and what is known about the
// skipped event. It returns a *SkipRefused if the skip cannot be undone.
func (r *Repair) decideUnskip(ctx context.Context, db accountdb.DB, s Skip) (
	known projection.StoredAccount, before projection.Account, of SkippedEvent, err error,
) {
	if known, err = r.known(ctx, db, s.AccountID); err != nil {
		return known, before, of, err
	}
	var (
		last     int64
		previous string
	)
	err = db.QueryRow(ctx, sql.Query("skip_last"), r.in(readmodel.Action{Result: readmodel.ResultSkipped}).Result, s.AccountID).
		Scan(&last, &of.Place.Topic, &of.Place.Partition, &of.Place.Offset, &previous, &of.Class)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return known, before, of, s.refuseUnskip("no version of it was skipped")
	case err != nil:
		return known, before, of, err
	case last != s.Version:
		return known, before, of, s.refuseUnskip("the last version that was skipped is %d, not %d", last, s.Version)
	case known.Account.Version != s.Version:
		return known, before, of, s.refuseUnskip("it is at version %d: only while nothing was applied after version %d can the skip be taken back",
			known.Account.Version, s.Version)
	}
	if err := r.keepsRow(ctx, db, s); err != nil {
		return known, before, of, err
	}
	if of.Place.Topic != "" {
		of.EventID = known.Account.LastEventID
	}
	before = known.Account
	before.Version, before.LastEventID = s.Version-1, strings.Clone(previous)
	return known, before, of, nil
}

// keepsRow returns an error if the row of the account must stay. This is so if the account has an
// opening at this version or a later one, or if a foreign key would change or delete rows of
// another table. An unskip would remove the row and write it again.
func (r *Repair) keepsRow(ctx context.Context, db readmodel.Querier, s Skip) error {
	if r.custom() {
		return nil
	}
	opened, err := readmodel.One[bool](ctx, db, "look for an opening", "unskip_opened", s.AccountID, s.Version)
	if err != nil {
		return err
	}
	if opened {
		return s.refuseUnskip("it starts from an opening at version %d or later", s.Version)
	}
	dependents, err := readmodel.Texts(ctx, db, "look for foreign keys", "rebuild_dependents", []string{readmodel.BalanceName})
	if err == nil && len(dependents) > 0 {
		err = s.refuseUnskip("its row would be removed and written again, and with it rows of %s (a foreign key)", strings.Join(dependents, ", "))
	}
	return err
}
