package repair

import (
	"context"
	"math"
	"slices"
	"time"

	"projector/projection"
	"projector/readmodel"
	"projector/readmodel/accountdb"
	"projector/readmodel/accounts"
)

// OpeningPiece is the largest number of accounts that one transaction opens, unless
// RepairConfig.Piece is set. The accounts are locked for some tenths of a second.
const OpeningPiece = 8192

// Apply opens the accounts in transactions of bounded size. After each transaction it calls
// observe, which may be nil. Accounts that have reached their opening's version are not changed. So
// the same openings may be applied again after an error.
func (o *Openings) Apply(ctx context.Context, openings []Opening, observe func(readmodel.Step)) error {
	if err := o.consumers.begin(ctx); err != nil {
		return err
	}
	cfg := o.repair.cfg
	if cfg.Piece == 0 {
		cfg.Piece = OpeningPiece
	}
	return readmodel.InPieces(ctx, cfg, &opening{Openings: o, left: openings, most: cfg.Piece}, func(step readmodel.Step, took time.Duration, _ bool) error {
		if observe != nil {
			observe(step)
		}
		return o.consumers.ifOvertaken(ctx, o.repair.pause(step, took))
	})
}

// opening holds the accounts that are not opened yet, and those with waiting events to apply.
type opening struct {
	*Openings
	left    []Opening
	healing []string
	most    int    // number of accounts to read at a time if many events are parked
	alone   string // the account of the last transaction, if it was the only one
}

// Do implements the interface pieces of package readmodel. One transaction decides and writes.
func (p *opening) Do(ctx context.Context, limit int) (step readmodel.Step, more bool, err error) {
	var (
		read      = p.left[:min(limit, p.most, len(p.left))]
		decisions []projection.Decision
		changes   *accounts.Changes
	)
	err = p.repair.transact(ctx, func(attempt context.Context, tx *accountdb.Tx) (err error) {
		tx.Copies = true
		p.store.DB = tx.DB()
		if decisions, changes, err = p.openLocked(attempt, tx, read, limit); err != nil {
			return err
		}
		if err := p.repair.write(attempt, tx, changes, nil); err != nil {
			return err
		}
		return p.write(attempt, tx.Tx, applied(read, decisions))
	})
	if p.alone = ""; len(decisions) == 1 {
		p.alone = read[0].AccountID
	}
	if err != nil {
		return readmodel.Step{}, true, err
	}
	decided(read, decisions)
	if p.most = min(4*p.most, math.MaxInt/4); len(decisions) > 0 && len(decisions) < len(read) {
		p.most = 2 * len(decisions)
	}
	p.left, p.healing = p.left[len(decisions):], p.fold.Healing()
	return readmodel.Step{Records: len(decisions), Healed: changes.Healed}, len(p.left) > 0 || len(p.healing) > 0, nil
}

// openLocked does the same as open, and locks the accounts whose rows change. It first decides
// without locks, because most accounts of a ledger have no row to lock. If such an account gets a
// row meanwhile, the write fails. Accounts that are not changed need no lock either, because only
// an unskip or a rebuild decreases a version. An account with waiting events is locked even if it
// has no row, because Discard may remove such an event.
func (p *opening) openLocked(ctx context.Context, tx *accountdb.Tx, read []Opening, limit int) ([]projection.Decision, *accounts.Changes, error) {
	var waiting []string // locked accounts with waiting events
	for lock := len(p.healing) > 0; ; lock = true {
		if lock {
			if len(waiting) > 0 {
				tx.Queue(tx.Tables.Query("repair_lock_absent"), waiting)
			}
			queueLocks(tx, append(openedIDs(read), p.healing...))
			if err := tx.Send(ctx); err != nil {
				return nil, nil, err
			}
		}
		decisions, err := p.open(ctx, read, limit)
		if err != nil {
			return nil, nil, err
		}
		changes := p.fold.Gather()
		part, healed := someWaiting(read, changes.Pruned)
		switch {
		case slices.ContainsFunc(healed, func(id string) bool { return !slices.Contains(waiting, id) }):
			read, waiting = part, healed
		case lock || !changes.AnyExists():
			return decisions, changes, nil
		}
	}
}

// someWaiting returns the first openings, and those of their accounts that have waiting events. It
// returns all openings if at most repairAccounts of the accounts have waiting events.
func someWaiting(openings []Opening, pruned []accounts.PrunedThrough) (part []Opening, waiting []string) {
	has := make(map[string]bool, len(pruned))
	for i := range pruned {
		has[pruned[i].AccountID] = true
	}
	for i := range openings {
		if id := openings[i].AccountID; has[id] {
			if waiting = append(waiting, id); len(waiting) == repairAccounts {
				return openings[:i+1], waiting
			}
		}
	}
	return openings, waiting
}

// open applies the waiting events that an earlier transaction left, opens accounts and applies
// their waiting events. With the limit 1, it applies one waiting event or opens one account.
func (p *opening) open(ctx context.Context, openings []Opening, limit int) ([]projection.Decision, error) {
	p.fold.Reset()
	if err := p.fold.Read(ctx, p.healing); err != nil {
		return nil, err
	}
	if err := p.fold.Heal(ctx, limit); err != nil || p.fold.Pending().Events >= min(limit, accounts.HealPiece) {
		return nil, err
	}
	decisions, err := p.decide(ctx, openings, readmodel.RepairEvents)
	if err != nil || limit == 1 {
		return decisions, err
	}
	return decisions, p.fold.HealShortQueues(ctx, min(limit, readmodel.RepairEvents))
}

// Refuse implements the interface pieces.
func (p *opening) Refuse(reason string) bool {
	if p.alone == "" {
		return p.fold.Refuse(reason)
	}
	_, again := p.refused[p.alone]
	p.refused[p.alone] = reason
	return !again
}
