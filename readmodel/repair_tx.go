package readmodel

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"projector/projection"
	"projector/sql"
)

// transact folds the runs and writes the results, in one transaction. The folds are
// those of the last try, also with an error.
func (r *Repair) transact(ctx context.Context, runs []*Run, budget int) (folds []*repairFold, err error) {
	err = transactOnce(ctx, r.cfg.Pool, func(attempt context.Context, tx *Tx) error {
		known, err := r.lock(attempt, tx, runs)
		if err != nil {
			return err
		}
		if folds, err = r.foldAll(attempt, tx, runs, known, budget); err != nil {
			return err
		}
		return r.write(attempt, tx, folds)
	})
	return folds, err
}

// lock keeps everybody else from the accounts and returns what the database knows
// of them.
func (r *Repair) lock(ctx context.Context, tx *Tx, runs []*Run) (map[string]projection.Account, error) {
	ids := accountIDs(runs)
	tx.Queue(sql.Query("repair_lock_absent"), ids)
	tx.Queue(sql.Query("repair_lock_accounts"), ids)
	if err := tx.Send(ctx); err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	return r.knownAccounts(ctx, tx, ids)
}

func (r *Repair) knownAccounts(ctx context.Context, db querier, ids []string) (map[string]projection.Account, error) {
	loaded, err := LoadAccounts(ctx, db, ids, r.cfg.FirstVersion)
	if err != nil {
		return nil, err
	}
	known := make(map[string]projection.Account, len(ids))
	for _, id := range ids {
		known[id] = projection.Account{ID: id, State: projection.NewState(r.cfg.FirstVersion)}
	}
	for _, a := range loaded {
		known[a.ID] = a
	}
	return known, nil
}

func (r *Repair) foldAll(ctx context.Context, db querier, runs []*Run, known map[string]projection.Account, budget int) ([]*repairFold, error) {
	folds := make([]*repairFold, 0, len(runs))
	alone := budget == 1
	for _, run := range runs {
		if budget <= 0 {
			break
		}
		f := newRepairFold(run, known[run.AccountID], r.parkedOf(ctx, db, run.AccountID))
		folds = append(folds, f)
		if err := f.fold(&budget); err != nil {
			return folds, err
		}
		if alone {
			continue
		}
		if err := f.finishShortQueue(); err != nil {
			return folds, err
		}
	}
	return folds, nil
}

func (r *Repair) parkedOf(ctx context.Context, db querier, account string) parkedLoader {
	return func(above int64, limit int) ([]projection.Parked, bool, error) {
		return loadParked(ctx, db, r.cfg.Formats, account, above, limit)
	}
}

// write writes what the folds have changed and records what was done.
func (r *Repair) write(ctx context.Context, tx *Tx, folds []*repairFold) error {
	var (
		changes projection.Changes
		actions []Action
	)
	for _, f := range folds {
		f.changes(&changes)
		f.judged(func(rec *RepairRecord, v projection.Verdict) {
			actions = append(actions, rec.Action.with(v))
		})
	}
	return writeRepair(ctx, tx, &changes, actions)
}

func writeRepair(ctx context.Context, tx *Tx, c *projection.Changes, actions []Action) error {
	slices.SortFunc(c.Rows, func(a, b projection.Row) int { return strings.Compare(a.AccountID, b.AccountID) })
	queueActions(tx, actions)
	if err := writeChanges(ctx, tx, c); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// Plan tells by each record's Verdict what Apply would do with it now, and
// changes nothing.
func (r *Repair) Plan(ctx context.Context, runs []*Run) error {
	const chunk = 1000
	for piece := range slices.Chunk(runs, chunk) {
		if err := r.planSome(ctx, piece); err != nil {
			return fmt.Errorf("plan: %w", err)
		}
	}
	return nil
}

func (r *Repair) planSome(ctx context.Context, runs []*Run) error {
	ctx, cancel := context.WithTimeout(ctx, repairAttempt)
	defer cancel()
	known, err := r.knownAccounts(ctx, r.cfg.Pool, accountIDs(runs))
	if err != nil {
		return err
	}
	for _, run := range runs {
		f := newRepairFold(run, known[run.AccountID], r.parkedOf(ctx, r.cfg.Pool, run.AccountID))
		for f.next < len(run.records) {
			one := 1
			if err := f.fold(&one); err != nil {
				return err
			}
		}
		f.judged(func(rec *RepairRecord, v projection.Verdict) { rec.Verdict = v })
	}
	return nil
}

// accountIDs lists the accounts of the runs in order.
func accountIDs(runs []*Run) []string {
	ids := make([]string, len(runs))
	for i, run := range runs {
		ids[i] = run.AccountID
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
