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

// Skip is one version of an account to pass over on purpose.
type Skip struct {
	AccountID string
	Version   int64
	Actor     string
	Reason    string
	// NothingWaits: the account may be one that waits for no event.
	NothingWaits bool
	// Planned is what was known of the event when it was approved; nil: no approval was needed.
	Planned *SkippedEvent
}

// SkippedEvent is what is known of the event of a version that is skipped; the zero value:
// nothing.
type SkippedEvent struct {
	Class   event.Class
	EventID string
	Place   projection.RecordRef
}

// SkipPlan is what a Skip would do, or an Unskip, which parks the event again and heals none.
type SkipPlan struct {
	Before, After AccountState
	Event         SkippedEvent
	Healed        int // parked events that would be applied after it
}

// AccountState is an account before or after a Skip.
type AccountState struct {
	Version int64
	Balance string // decimal; empty: the projection has none
	// Currency is empty while it is not known.
	Currency string
	Closed   bool
	Waits    bool // for the next version
}

// Skipped is what a skip did.
type Skipped struct {
	EventID string // of the event passed over; empty when unknown
	Healed  int    // parked events applied after it
}

// SkipRefused says that a version must not be passed over.
type SkipRefused struct {
	AccountID string
	Version   int64 // that was to be passed over
	Expected  int64 // that the account waits for
	Unknown   bool  // nothing is known of the account
	Applies   bool  // the event is there and is about to be applied
	Idle      bool  // the account waits for no event
	Changed   bool  // what is known of the event is not what was approved
}

// Error implements error and names what is expected instead.
func (e *SkipRefused) Error() string {
	switch {
	case e.Unknown:
		return fmt.Sprintf("account %q is unknown: no event of it has been applied or parked", e.AccountID)
	case e.Applies:
		return fmt.Sprintf("account %q: the event of version %d is there and is about to be applied", e.AccountID, e.Version)
	case e.Idle:
		return fmt.Sprintf("account %q waits for no event: its next one, version %d, may still come, and would have no effect; "+
			"add --nothing-waits if it is known to be lost", e.AccountID, e.Version)
	case e.Changed:
		return fmt.Sprintf("account %q: what is known of version %d has changed since it was agreed to", e.AccountID, e.Version)
	default:
		return fmt.Sprintf("account %q expects version %d, not %d", e.AccountID, e.Expected, e.Version)
	}
}

// Skipper is a Replayer of a projection that versions are passed over in.
type Skipper interface {
	// PlanSkip returns what a Skip would do now, or a *SkipRefused.
	PlanSkip(ctx context.Context, s Skip) (SkipPlan, error)
	// Skip passes over a version if it is exactly the one the account expects, then heals
	// what waits for it.
	Skip(ctx context.Context, s Skip) (Skipped, error)
	// PlanUnskip returns the account as an Unskip would leave it now, or an *UnskipRefused.
	PlanUnskip(ctx context.Context, s Skip) (SkipPlan, error)
	// Unskip takes back the last skip of an account, if nothing was applied after it.
	Unskip(ctx context.Context, s Skip) error
	// SkipAgain skips a version that was skipped before, in tables that are built again.
	SkipAgain(ctx context.Context, s Skip, known, seen bool) (passed bool, err error)
}

var _ Skipper = (*Repair)(nil)

// Skip passes over a version if it is exactly the one the account expects, then
// heals what waits for it. A *SkipRefused means that nothing was changed; it is
// recorded, too.
func (r *Repair) Skip(ctx context.Context, s Skip) (Skipped, error) {
	var done Skipped
	err := r.transact(ctx, func(attempt context.Context, tx *accountdb.Tx) (err error) {
		done, err = r.skip(attempt, tx, s)
		return err
	})
	var refused *SkipRefused
	switch {
	case errors.As(err, &refused):
		return Skipped{}, errors.Join(refused, r.recordRefusal(ctx, s, refused))
	case err != nil:
		return Skipped{}, fmt.Errorf("skip: %w", err)
	}
	done.Healed, err = r.heal(ctx, s.AccountID)
	return done, err
}

// heal applies what waits in an account, as far as it fits. It comes after the transaction of a skip:
// an event that PostgreSQL refuses must not keep the version from being skipped.
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
	options.Take = false
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

// waiting reports whether an account waits for an event.
func waiting(known *projection.StoredAccount) bool { return known.Parked > 0 || known.Overflowed }

func (r *Repair) skip(ctx context.Context, tx *accountdb.Tx, s Skip) (Skipped, error) {
	if err := lockAccounts(ctx, tx, []string{s.AccountID}); err != nil {
		return Skipped{}, err
	}
	known, of, err := r.decideSkip(ctx, tx.DB(), s)
	if err != nil {
		return Skipped{}, err
	}
	if s.Planned != nil && *s.Planned != of {
		return Skipped{}, &SkipRefused{AccountID: s.AccountID, Version: s.Version, Expected: s.Version, Changed: true}
	}
	action := r.in(s.action(readmodel.ResultSkipped))
	action.Class, action.Topic, action.Partition, action.Offset = of.Class, of.Place.Topic, of.Place.Partition, of.Place.Offset
	action.PreviousEventID = known.Account.LastEventID
	return Skipped{EventID: of.EventID}, r.passOver(ctx, tx, s, of.EventID, []readmodel.Action{action})
}

// passOver passes over the account's next version.
func (r *Repair) passOver(ctx context.Context, tx *accountdb.Tx, s Skip, eventID string, actions []readmodel.Action) error {
	fold := accounts.NewFold(r.options(), r.storeOf(tx.DB()))
	if err := fold.Read(ctx, []string{s.AccountID}); err != nil {
		return err
	}
	fold.Skip(s.AccountID, s.Version, eventID)
	return r.write(ctx, tx, fold.Gather(), actions)
}

// known is what the database knows of an account.
func (r *Repair) known(ctx context.Context, db accountdb.DB, id string) (projection.StoredAccount, error) {
	known := projection.StoredAccount{ID: id, Account: projection.NewAccount(r.cfg.FirstVersion)}
	err := r.storeOf(db).Accounts(ctx, []string{id}, func(a *projection.StoredAccount) {
		known = *a
		known.ID, known.Account.LastEventID = id, strings.Clone(a.Account.LastEventID)
	})
	return known, err
}

// decideSkip reads the account and what is known of the event, and refuses what must not be
// passed over.
func (r *Repair) decideSkip(ctx context.Context, db accountdb.DB, s Skip) (known projection.StoredAccount, of SkippedEvent, err error) {
	if known, err = r.known(ctx, db, s.AccountID); err != nil {
		return known, of, err
	}
	refused := &SkipRefused{AccountID: s.AccountID, Version: s.Version, Expected: known.Account.Version + 1}
	if refused.Unknown = !known.Exists && !waiting(&known); refused.Unknown {
		return known, of, refused
	}
	if _, fits := known.Account.Skip(s.Version, ""); !fits {
		return known, of, refused
	}
	if refused.Idle = !waiting(&known) && !s.NothingWaits; refused.Idle {
		return known, of, refused
	}
	of, err = loadSkippedEvent(ctx, db, s)
	if err == nil && of.Class == "" && known.Overflowed {
		of.Class = event.VersionGap // it may be one of those beyond the park limit
	}
	if err != nil || of.Class != event.VersionGap {
		return known, of, err
	}
	parked, _, err := accountdb.LoadParked(ctx, db, r.cfg.Formats, s.AccountID, s.Version-1, 1)
	if err != nil || len(parked) == 0 {
		return known, of, err
	}
	if _, v := known.Account.Apply(&parked[0].Decoded, true); v.Outcome != projection.DeadLettered {
		refused.Applies = true
		return known, of, refused
	}
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

func (s Skip) action(result string) readmodel.Action {
	return readmodel.Action{
		Kind: readmodel.ActionSkip, AccountID: s.AccountID, Version: &s.Version, Actor: s.Actor, Reason: s.Reason, Result: result,
	}
}

func (r *Repair) recordRefusal(ctx context.Context, s Skip, refused *SkipRefused) error {
	action := r.in(s.action(readmodel.ResultRefused))
	action.Reason = fmt.Sprintf("%s (expected version %d)", s.Reason, refused.Expected)
	return readmodel.RecordActions(ctx, r.cfg.Pool, []readmodel.Action{action})
}

// SkipAgain repeats an earlier skip in tables that are built again, and heals what waits for it.
// The version must be the account's next one, and its event must be parked unless seen is true.
// known: the earlier skip knew the event, so its id is stored. It returns whether the account has
// passed the version.
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
	if known.Account.Version+1 != s.Version || !known.Exists && known.Parked == 0 {
		return false, nil
	}
	of, err := loadSkippedEvent(ctx, tx.DB(), s)
	if err != nil || of.Class == "" && !seen {
		return false, err
	}
	eventID := ""
	if wasKnown {
		eventID = of.EventID
	}
	return true, r.passOver(ctx, tx, s, eventID, nil)
}
