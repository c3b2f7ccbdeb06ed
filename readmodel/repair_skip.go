package readmodel

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel/accounts"
	"projector/sql"
)

// Skip is the wish to pass over one version of an account on purpose.
type Skip struct {
	AccountID string
	Version   int64
	Actor     string
	Reason    string
}

// Skipped is what a skip did.
type Skipped struct {
	EventID string // of the event passed over; empty when unknown
	Healed  int    // parked events applied behind it
}

// SkipRefused says that a version must not be passed over.
type SkipRefused struct {
	AccountID string
	Version   int64 // that was to be passed over
	Expected  int64 // that the account waits for
	Unknown   bool  // nothing is known of the account
	Applies   bool  // the event is there and is about to be applied
}

// Error implements error and names what is expected instead.
func (e *SkipRefused) Error() string {
	switch {
	case e.Unknown:
		return fmt.Sprintf("account %q is unknown: no event of it has been applied or parked", e.AccountID)
	case e.Applies:
		return fmt.Sprintf("account %q: the event of version %d is there and is about to be applied", e.AccountID, e.Version)
	default:
		return fmt.Sprintf("account %q expects version %d, not %d", e.AccountID, e.Expected, e.Version)
	}
}

// Skip passes over a version if it is exactly the one the account expects, then
// heals what waits behind it. A *SkipRefused means that nothing was changed; it is
// recorded, too.
func (r *Repair) Skip(ctx context.Context, s Skip) (Skipped, error) {
	var done Skipped
	err := transactOnce(ctx, r.cfg.Pool, func(attempt context.Context, tx *Tx) (err error) {
		tx.tables = r.tables()
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
	rest := &replay{repair: r, healing: []string{s.AccountID}}
	err = r.run(ctx, rest, func(step Step) { done.Healed += step.Healed })
	return done, err
}

// PlanSkip returns a *SkipRefused if a Skip would now.
func (r *Repair) PlanSkip(ctx context.Context, s Skip) error {
	return patiently(ctx, func(attempt context.Context) error {
		_, err := r.decideSkip(attempt, r.db(), s)
		return err
	})
}

// hole is the event of a version to be passed over, as far as it is known.
type hole struct {
	class   event.Class
	eventID string
	place   projection.RecordRef
}

func (r *Repair) skip(ctx context.Context, tx *Tx, s Skip) (Skipped, error) {
	if err := lockAccounts(ctx, tx, []string{s.AccountID}); err != nil {
		return Skipped{}, err
	}
	h, err := r.decideSkip(ctx, tx, s)
	if err != nil {
		return Skipped{}, err
	}
	action := r.in(s.action(ResultSkipped))
	action.Class, action.Topic, action.Partition, action.Offset = h.class, h.place.Topic, h.place.Partition, h.place.Offset
	healed, err := r.passOver(ctx, tx, s, h.eventID, []Action{action})
	return Skipped{EventID: h.eventID, Healed: healed}, err
}

// passOver passes over the account's next version and heals what is parked behind it, a
// piece at most. It returns how many events that were.
func (r *Repair) passOver(ctx context.Context, tx *Tx, s Skip, eventID string, actions []Action) (healed int, err error) {
	fold := accounts.NewFold(r.options(), r.storeOf(tx))
	if err := fold.Read(ctx, []string{s.AccountID}); err != nil {
		return 0, err
	}
	fold.Skip(s.AccountID, s.Version, eventID)
	if err := fold.Heal(ctx, accounts.HealPiece); err != nil {
		return 0, err
	}
	changes := fold.Changes()
	return changes.Healed, r.write(ctx, tx, changes, actions)
}

// known is what the database knows of an account.
func (r *Repair) known(ctx context.Context, db querier, id string) (projection.StoredAccount, error) {
	known := projection.StoredAccount{ID: id, Account: projection.NewAccount(r.cfg.FirstVersion)}
	err := r.storeOf(db).Accounts(ctx, []string{id}, func(a *projection.StoredAccount) {
		known = *a
		known.ID, known.Account.LastEventID = id, strings.Clone(a.Account.LastEventID)
	})
	return known, err
}

// decideSkip reads the account and refuses what must not be passed over.
func (r *Repair) decideSkip(ctx context.Context, db querier, s Skip) (hole, error) {
	known, err := r.known(ctx, db, s.AccountID)
	if err != nil {
		return hole{}, err
	}
	refused := &SkipRefused{AccountID: s.AccountID, Version: s.Version, Expected: known.Account.Version + 1}
	if refused.Unknown = !known.Exists && known.Parked == 0 && !known.Overflowed; refused.Unknown {
		return hole{}, refused
	}
	if _, fits := known.Account.Skip(s.Version, ""); !fits {
		return hole{}, refused
	}
	h, err := loadHole(ctx, db, s)
	if err != nil || h.class != event.VersionGap {
		return h, err
	}
	parked, _, err := loadParked(ctx, db, r.cfg.Formats, s.AccountID, s.Version-1, 1)
	if err != nil || len(parked) == 0 {
		return h, err
	}
	if _, v := known.Account.Apply(&parked[0].Decoded, true); v.Outcome != projection.DeadLettered {
		refused.Applies = true
		return h, refused
	}
	return h, nil
}

func loadHole(ctx context.Context, db querier, s Skip) (h hole, err error) {
	err = db.QueryRow(ctx, sql.Query("parked_at"), s.AccountID, s.Version).
		Scan(&h.class, &h.eventID, &h.place.Topic, &h.place.Partition, &h.place.Offset)
	if errors.Is(err, pgx.ErrNoRows) {
		return hole{}, nil
	}
	return h, err
}

func (s Skip) action(result string) Action {
	return Action{
		Kind: ActionSkip, AccountID: s.AccountID, Version: &s.Version, Actor: s.Actor, Reason: s.Reason, Result: result,
	}
}

func (r *Repair) recordRefusal(ctx context.Context, s Skip, refused *SkipRefused) error {
	action := r.in(s.action(ResultRefused))
	action.Reason = fmt.Sprintf("%s (expected version %d)", s.Reason, refused.Expected)
	return RecordActions(ctx, r.cfg.Pool, []Action{action})
}
