package repair

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/jackc/pgx/v5"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/accountdb"
	"projector/readmodel/accounts"
)

// Skip is a version of an account that an operator wants to skip.
type Skip struct {
	AccountID string
	Version   int64
	Actor     string
	Reason    string
	// NothingWaits allows the skip even if no event of the account waits.
	NothingWaits bool
	// Planned is the event that the plan showed. If another event is found, nothing is changed. It
	// is nil if there was no plan.
	Planned *SkippedEvent
	// Refused means that the plan was refused. Then nothing is changed, and the audit trail records
	// the refusal.
	Refused bool
}

// changed reports whether the plan was refused or was made for another event.
func (s *Skip) changed(of SkippedEvent) bool {
	return s.Refused || s.Planned != nil && *s.Planned != of
}

// SkippedEvent is what is known about the event of a skipped version. It is zero if nothing is
// known.
type SkippedEvent struct {
	Class   event.Class
	EventID string
	Place   projection.RecordRef
}

// SkipPlan is what a Skip or an Unskip would do. An Unskip parks the event again and applies no
// events.
type SkipPlan struct {
	Before, After AccountState
	Event         SkippedEvent
	Healed        int // number of parked events that would be applied afterwards
	StillParked   int // number of parked events that would wait for a later version
}

// AccountState is an account before or after a Skip.
type AccountState struct {
	Version int64
	Balance string // decimal; empty if the projection has no balances
	// Currency is empty if it is not known yet.
	Currency string
	Closed   bool
	Waits    bool // the account waits for its next version
}

// Skipped is the result of a skip.
type Skipped struct {
	EventID string // id of the skipped event; empty if unknown
	Healed  int    // number of parked events applied afterwards
}

// SkipRefused means that a version must not be skipped, or that a skip cannot be undone.
type SkipRefused struct {
	text    string
	audited string // the reason in the audit trail
}

func (e *SkipRefused) Error() string { return e.text }

// Skip skips a version if it is the account's next one and events wait for it. With NothingWaits,
// it skips the version even if no event waits. After the skip, it applies the events that waited
// for this version. A *SkipRefused means that nothing was changed. The refusal is recorded in the
// audit trail.
func (r *Repair) Skip(ctx context.Context, s Skip) (Skipped, error) {
	var done Skipped
	err := r.transact(ctx, func(attempt context.Context, tx *accountdb.Tx) (err error) {
		done, err = r.skip(attempt, tx, s)
		return err
	})
	if err != nil {
		return Skipped{}, r.failed(ctx, readmodel.ActionSkip, s, err)
	}
	if done.Healed, err = r.heal(ctx, s.AccountID); err != nil {
		return done, fmt.Errorf("version %d is skipped, but the events that wait for this were not all applied, which a running instance does: %w", s.Version, err)
	}
	return done, nil
}

// heal applies the waiting events of an account, as long as one of them has the account's next
// version. It runs after the transaction of the skip, because an event that PostgreSQL refuses must
// not prevent the skip.
func (r *Repair) heal(ctx context.Context, account string) (healed int, err error) {
	err = r.run(ctx, &replay{repair: r, healing: []string{account}}, func(step readmodel.Step) { healed += step.Healed })
	return healed, err
}

// PlanSkip returns what a Skip would do now, or a *SkipRefused.
func (r *Repair) PlanSkip(ctx context.Context, s Skip) (plan SkipPlan, err error) {
	err = readmodel.Patiently(ctx, func(attempt context.Context) (err error) {
		plan, err = r.planSkip(attempt, s)
		return err
	})
	return plan, err
}

func (r *Repair) planSkip(ctx context.Context, s Skip) (plan SkipPlan, err error) {
	known, of, err := r.decideSkip(ctx, r.db(), s)
	if err != nil {
		return plan, err
	}
	plan.Event = of
	plan.Before = r.stateOf(known.Account, waiting(&known))
	options := r.options()
	options.Custom = false
	fold := accounts.NewFold(options, r.storeOf(r.db()))
	if err := fold.Read(ctx, []string{s.AccountID}); err != nil {
		return plan, err
	}
	fold.Skip(s.AccountID, s.Version, of.EventID)
	for len(fold.Healing()) > 0 {
		if err := fold.HealShortQueues(ctx, math.MaxInt); err != nil {
			return plan, err
		}
	}
	changes := fold.Gather()
	plan.Healed = changes.Healed
	plan.StillParked = int(known.Parked) - plan.Healed
	if known.NextParked == s.Version {
		plan.StillParked-- // the event of the skipped version
	}
	for rows := range changes.RowChunks(func() int { return 1 }) {
		plan.After = r.stateOf(rows[0].Account, fold.Waits(s.AccountID))
	}
	return plan, nil
}

func (r *Repair) stateOf(a projection.Account, waits bool) AccountState {
	state := AccountState{Version: a.Version, Closed: a.Closed, Waits: waits}
	if !r.custom() {
		state.Balance, state.Currency = event.FormatAmount(a.Balance, a.Currency), a.Currency.Code()
	}
	return state
}

func waiting(known *projection.StoredAccount) bool { return known.Parked > 0 || known.Overflowed }

func (r *Repair) skip(ctx context.Context, tx *accountdb.Tx, s Skip) (Skipped, error) {
	if err := lockAccounts(ctx, tx, []string{s.AccountID}); err != nil {
		return Skipped{}, err
	}
	known, of, err := r.decideSkip(ctx, tx.DB(), s)
	if err != nil {
		return Skipped{}, err
	}
	if s.changed(of) {
		return Skipped{}, s.refuse(s.Version, ": what is known of version %d has changed since it was agreed to", s.Version)
	}
	action := r.action(readmodel.ActionSkip, readmodel.ResultSkipped, s, of)
	action.PreviousEventID = known.Account.LastEventID
	return Skipped{EventID: of.EventID}, r.passOver(ctx, tx, s, of.EventID, []readmodel.Action{action})
}

func (r *Repair) passOver(ctx context.Context, tx *accountdb.Tx, s Skip, eventID string, actions []readmodel.Action) error {
	fold := accounts.NewFold(r.options(), r.storeOf(tx.DB()))
	if err := fold.Read(ctx, []string{s.AccountID}); err != nil {
		return err
	}
	fold.Skip(s.AccountID, s.Version, eventID)
	return r.write(ctx, tx, fold.Gather(), actions)
}

// known reads an account. If the database does not have it, the result is a new account.
func (r *Repair) known(ctx context.Context, db accountdb.DB, id string) (projection.StoredAccount, error) {
	known := projection.StoredAccount{ID: id, Account: projection.NewAccount(r.cfg.FirstVersion)}
	err := r.storeOf(db).Accounts(ctx, []string{id}, func(a *projection.StoredAccount) {
		known = *a
		known.ID, known.Account.LastEventID = id, strings.Clone(a.Account.LastEventID)
	})
	return known, err
}

// decideSkip reads the account and what is known about the event. It returns a *SkipRefused if the
// version must not be skipped.
func (r *Repair) decideSkip(ctx context.Context, db accountdb.DB, s Skip) (known projection.StoredAccount, of SkippedEvent, err error) {
	if known, err = r.known(ctx, db, s.AccountID); err != nil {
		return known, of, err
	}
	if known.Account.Version == projection.LastVersion {
		return known, of, s.refuseFor("no version follows", " is at version %d, the highest that there is: there is no next version to skip", known.Account.Version)
	}
	next := known.Account.Version + 1
	if !known.Exists && !waiting(&known) {
		return known, of, s.refuse(next, " is unknown: no event of it has been applied or parked")
	}
	if _, fits := known.Account.Skip(s.Version, ""); !fits {
		return known, of, s.refuse(next, " expects version %d, not %d", next, s.Version)
	}
	if !waiting(&known) && !s.NothingWaits {
		return known, of, s.refuse(next, " waits for no event: its next one, version %d, may still come, and would have no effect; "+
			"add --nothing-waits if it is known to be lost", next)
	}
	of, err = loadSkippedEvent(ctx, db, s)
	if err != nil || of.Class != event.VersionGap {
		return known, of, err
	}
	parked, _, err := accountdb.LoadParked(ctx, db, r.cfg.Formats, s.AccountID, s.Version-1, 1)
	if err != nil || len(parked) == 0 {
		return known, of, err
	}
	_, v := known.Account.Apply(&parked[0].Decoded, true)
	if v.Outcome != projection.DeadLettered {
		return known, of, s.refuse(next, ": the event of version %d is there and is about to be applied", s.Version)
	}
	of.Class = v.Class // the consumer stores it only when it tries to apply the event
	return known, of, nil
}

func loadSkippedEvent(ctx context.Context, db accountdb.DB, s Skip) (of SkippedEvent, err error) {
	err = db.QueryRow(ctx, db.Tables.Query("parked_at"), s.AccountID, s.Version).
		Scan(&of.Class, &of.EventID, &of.Place.Topic, &of.Place.Partition, &of.Place.Offset)
	if errors.Is(err, pgx.ErrNoRows) {
		return SkippedEvent{}, nil
	}
	return of, err
}

// action returns the row of the audit trail for a skip or an unskip of an event.
func (r *Repair) action(kind readmodel.ActionKind, result string, s Skip, of SkippedEvent) readmodel.Action {
	return r.in(readmodel.Action{
		Kind: kind, AccountID: s.AccountID, Version: &s.Version, Actor: s.Actor, Reason: s.Reason, Result: result,
		Class: of.Class, Topic: of.Place.Topic, Partition: of.Place.Partition, Offset: of.Place.Offset,
	})
}

// refuse returns a *SkipRefused for an account that expects a version.
func (s Skip) refuse(expected int64, format string, args ...any) error {
	return s.refuseFor(fmt.Sprintf("expected version %d", expected), format, args...)
}

// refuseFor returns a *SkipRefused. The parameter expected is a part of the reason in the audit
// trail.
func (s Skip) refuseFor(expected, format string, args ...any) error {
	return &SkipRefused{
		text:    fmt.Sprintf("account %q", s.AccountID) + fmt.Sprintf(format, args...),
		audited: fmt.Sprintf("%s (%s)", s.Reason, expected),
	}
}

// failed returns the error of a skip or an unskip. It records a refusal in the audit trail.
func (r *Repair) failed(ctx context.Context, kind readmodel.ActionKind, s Skip, err error) error {
	var refused *SkipRefused
	if !errors.As(err, &refused) {
		return fmt.Errorf("%s: %w", kind, err)
	}
	action := r.action(kind, readmodel.ResultRefused, s, SkippedEvent{})
	action.Reason = refused.audited
	return errors.Join(refused, readmodel.RecordActions(ctx, r.cfg.Pool, []readmodel.Action{action}))
}

// SkipAgain repeats an earlier skip in a rebuild and applies the events that waited for the skipped
// version. It skips the version only if it is the account's next one. If seen is false, the version
// is skipped only if its event is parked. If known is true, the earlier skip knew the event, so the
// event's id is stored. It returns whether the account has reached the version.
func (r *Repair) SkipAgain(ctx context.Context, s Skip, known, seen bool) (passed bool, err error) {
	err = r.transact(ctx, func(attempt context.Context, tx *accountdb.Tx) (err error) {
		passed, err = r.skipAgain(attempt, tx, s, known, seen)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("skip: %w", err)
	}
	if passed {
		_, err = r.heal(ctx, s.AccountID)
	}
	return passed, err
}

func (r *Repair) skipAgain(ctx context.Context, tx *accountdb.Tx, s Skip, wasKnown, seen bool) (bool, error) {
	known, err := r.known(ctx, tx.DB(), s.AccountID)
	if err != nil {
		return false, err
	}
	if known.Account.Version >= s.Version {
		return true, nil
	}
	if s.Version-1 != known.Account.Version {
		return false, nil
	}
	of, err := loadSkippedEvent(ctx, tx.DB(), s)
	if err != nil || of.Place.Topic == "" && !seen {
		return false, err
	}
	eventID := ""
	if wasKnown {
		eventID = of.EventID
	}
	return true, r.passOver(ctx, tx, s, eventID, nil)
}
