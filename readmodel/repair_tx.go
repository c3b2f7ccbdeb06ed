package readmodel

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"projector/errclass"
	"projector/projection"
	"projector/sql"
)

// transact folds the runs and writes what came of them, in one transaction.
func (r *Repair) transact(ctx context.Context, runs []*Run, budget int) (Step, error) {
	attempt, cancel := context.WithTimeout(ctx, repairAttempt)
	defer cancel()
	var folds []*repairFold
	err := r.inTx(attempt, func(tx pgx.Tx) error {
		known, err := r.lock(attempt, tx, runs)
		if err != nil {
			return err
		}
		if folds, err = r.foldAll(attempt, tx, runs, known, budget); err != nil {
			return err
		}
		return r.write(attempt, tx, folds)
	})
	if err != nil && errclass.Postgres(err) == errclass.Isolate {
		return r.isolate(ctx, runs, folds, budget, err)
	}
	if err != nil {
		return Step{}, fmt.Errorf("repair: %w", err)
	}
	var step Step
	for _, f := range folds {
		f.settle()
		step.Records += len(f.verdicts)
		step.Healed += f.healed
	}
	return step, nil
}

// inTx runs fn in a transaction whose every statement sees what was committed
// before it, whatever the server's default.
func (r *Repair) inTx(ctx context.Context, fn func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, r.cfg.Pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, fn)
}

// isolate finds the event that PostgreSQL refuses: half as many accounts, then
// half as many events a transaction until it is alone.
func (r *Repair) isolate(ctx context.Context, runs []*Run, folds []*repairFold, budget int, cause error) (Step, error) {
	switch {
	case len(runs) > 1:
		return r.transact(ctx, runs[:len(runs)/2], budget)
	case budget > 1:
		return r.transact(ctx, runs, budget/2)
	case len(folds) == 0 || folds[0].last == nil || !folds[0].last("PostgreSQL refused the row: "+errclass.Safe(cause)):
		return Step{}, fmt.Errorf("repair: %w", cause)
	}
	return r.transact(ctx, runs, budget)
}

// lock keeps everybody else from the accounts and answers what the database knows
// of them. See Repair for the order.
func (r *Repair) lock(ctx context.Context, tx pgx.Tx, runs []*Run) (map[string]projection.Account, error) {
	ids := accountIDs(runs)
	topics, partitions := concerned(runs)
	b := &pgx.Batch{}
	b.Queue(sql.Query("repair_fence"), topics, partitions)
	b.Queue(sql.Query("repair_lock_absent"), ids)
	b.Queue(sql.Query("repair_lock_accounts"), ids)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
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
	for _, run := range runs {
		if budget == 0 {
			break
		}
		f := newRepairFold(run, known[run.AccountID], r.parkedOf(ctx, db, run.AccountID))
		if err := f.fold(&budget); err != nil {
			return nil, err
		}
		folds = append(folds, f)
	}
	return folds, nil
}

func (r *Repair) parkedOf(ctx context.Context, db querier, account string) parkedLoader {
	return func(above int64, limit int) ([]projection.Parked, bool, error) {
		return loadParked(ctx, db, r.cfg.Formats, account, above, limit)
	}
}

// write writes what the folds have changed and records what was done.
func (r *Repair) write(ctx context.Context, tx pgx.Tx, folds []*repairFold) error {
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

func writeRepair(ctx context.Context, tx pgx.Tx, c *projection.Changes, actions []Action) error {
	slices.SortFunc(c.Rows, func(a, b projection.Row) int { return strings.Compare(a.AccountID, b.AccountID) })
	b := &pgx.Batch{}
	queueActions(b, actions)
	if err := sendChanges(ctx, tx, b, c); err != nil {
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

// concerned lists the partitions whose consumers may remember the runs' accounts;
// none stands for all, when that is not known.
func concerned(runs []*Run) (topics []string, numbers []int32) {
	topics, numbers = []string{}, []int32{}
	seen := map[SourcePartition]bool{}
	for _, run := range runs {
		if len(run.records) == 0 {
			return []string{}, []int32{}
		}
		for _, rec := range run.records {
			p := SourcePartition{rec.Record.Topic, rec.Record.Partition}
			if rec.Elsewhere {
				return []string{}, []int32{}
			}
			if !seen[p] {
				seen[p] = true
				topics, numbers = append(topics, p.Topic), append(numbers, p.Number)
			}
		}
	}
	return topics, numbers
}
