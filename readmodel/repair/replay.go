package repair

import (
	"context"
	"fmt"
	"slices"
	"time"

	"projector/internal/pace"
	"projector/readmodel"
	"projector/readmodel/accountdb"
	"projector/readmodel/accounts"
)

// replay holds the records that are not applied yet, and the accounts with waiting events to apply.
type replay struct {
	repair  *Repair
	records []*readmodel.RepairRecord
	healing []string

	store accountdb.Store // reads within the transaction
	fold  *accounts.Fold
}

// Do implements the interface pieces of package readmodel. One transaction locks the accounts,
// decides and writes.
func (p *replay) Do(ctx context.Context, limit int) (step readmodel.Step, more bool, err error) {
	var (
		next    int
		changes *accounts.Changes
	)
	err = p.repair.transact(ctx, func(attempt context.Context, tx *accountdb.Tx) (err error) {
		p.store.DB = tx.DB()
		next, err = p.decide(attempt, tx, limit)
		if err != nil {
			return err
		}
		changes = p.fold.Gather()
		actions := make([]readmodel.Action, next)
		for i, decision := range changes.Decisions {
			actions[i] = p.repair.in(p.records[i].Action.With(decision))
		}
		return p.repair.write(attempt, tx, changes, actions)
	})
	if err != nil {
		return readmodel.Step{}, true, err
	}
	for i, decision := range changes.Decisions {
		p.records[i].Decision, p.records[i].Decided = decision, true
	}
	p.records, p.healing = p.records[next:], p.fold.Healing()
	return readmodel.Step{Records: next, Healed: changes.Healed}, len(p.records) > 0 || len(p.healing) > 0, nil
}

// decide locks accounts and folds up to limit of their events. It returns the number of records
// about which it has decided.
func (p *replay) decide(ctx context.Context, tx *accountdb.Tx, limit int) (int, error) {
	p.fold.Reset()
	records := p.next(limit)
	ids := append(accountsOf(records), p.healing...)
	slices.Sort(ids)
	if err := lockAccounts(ctx, tx, slices.Compact(ids)); err != nil {
		return 0, err
	}
	if err := p.repair.cfg.Decisions.Check(ctx, tx.Tx, records); err != nil {
		return 0, err
	}
	if err := p.fold.Read(ctx, p.healing); err != nil {
		return 0, err
	}
	if err := p.fold.Heal(ctx, limit); err != nil || p.fold.Pending().Events >= limit {
		return 0, err
	}
	next, err := p.fold.Apply(ctx, decoded(records), limit)
	if err != nil || limit == 1 {
		return next, err
	}
	return next, p.fold.HealShortQueues(ctx, limit)
}

// next returns up to limit records of a few accounts.
func (p *replay) next(limit int) []*readmodel.RepairRecord {
	met, last := 0, ""
	for i, rec := range p.records {
		if id := rec.Decoded.Event.AccountID; i == 0 || id != last {
			met, last = met+1, id
		}
		if i == limit || met > repairAccounts {
			return p.records[:i]
		}
	}
	return p.records
}

// Refuse implements the interface pieces.
func (p *replay) Refuse(reason string) bool { return p.fold.Refuse(reason) }

// lockAccounts locks the accounts against all other writers. The ids are sorted.
func lockAccounts(ctx context.Context, tx *accountdb.Tx, ids []string) error {
	tx.Queue(tx.Tables.Query("repair_lock_absent"), ids)
	queueLocks(tx, ids)
	if err := tx.Send(ctx); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	return nil
}

// queueLocks locks the rows of accounts, in the order in which consumers lock them.
func queueLocks(tx *accountdb.Tx, ids []string) {
	if most := tx.Locked(max(len(ids), 1)); most < len(ids) {
		slices.Sort(ids)
		for chunk := range slices.Chunk(ids, most) {
			tx.Queue(tx.Tables.Query("repair_lock_accounts"), chunk)
		}
		return
	}
	tx.Queue(tx.Tables.Query("repair_lock_accounts"), ids)
}

// transact runs fn in a transaction on the accounts that are repaired, see readmodel.TransactOnce.
func (r *Repair) transact(ctx context.Context, fn func(context.Context, *accountdb.Tx) error) error {
	return readmodel.TransactOnce(ctx, r.cfg.Pool, func(attempt context.Context, tx *readmodel.Tx) error {
		return fn(attempt, &accountdb.Tx{Tx: tx, Tables: r.tables()})
	})
}

func (r *Repair) write(ctx context.Context, tx *accountdb.Tx, c *accounts.Changes, actions []readmodel.Action) error {
	err := accountdb.WriteChanges(ctx, tx, c)
	if err == nil {
		err = r.customWriter.Write(ctx, tx.Tx, c.CustomEvents)
	}
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	readmodel.QueueActions(tx.Tx, actions) // last, because other writers of the audit trail wait from here until the commit
	return nil
}

const (
	// progressWithin is how long a repair waits, between two of its transactions, for a
	// consumer to make progress. A consumer that was overtaken gathers events for 1 s at most.
	progressWithin = 4 * time.Second
	// progressEvery is the interval between the checks for progress.
	progressEvery = 25 * time.Millisecond
)

// partitionOf is a partition that a consumer group reads.
type partitionOf struct {
	group, topic string
	number       int32
}

// progress is the fence and the position of a consumer's partition. A consumer that a repair has
// overtaken claims its partition again, which increases the fence.
type progress struct{ fence, next int64 }

// resting lets consumers continue between the transactions of a repair. A repair overtakes a
// consumer if it writes an account to which the consumer has pending changes. The consumer then
// reads and decides again, which may take longer than the repair's transaction. A consumer that is
// overtaken every time would never make progress.
type resting struct {
	pool accountdb.DB
	ends readmodel.Ends // nil if unknown; then the repair only waits for consumers if always is set
	// If always is set, the repair waits for an overtaken consumer even if this consumer may have
	// nothing to do.
	always bool
	seen   map[partitionOf]progress
}

// begin stores the fences and positions of the consumers, if the repair may have to wait for them.
func (r *resting) begin(ctx context.Context) (err error) {
	if r.ends != nil || r.always {
		r.seen, err = r.load(ctx)
	}
	return err
}

// ifOvertaken calls rest if a consumer's fence has changed since the last call.
func (r *resting) ifOvertaken(ctx context.Context, pause time.Duration) error {
	now, err := r.load(ctx)
	if err != nil {
		return err
	}
	for p, before := range r.seen {
		if at, exists := now[p]; exists && at.fence != before.fence {
			return r.rest(ctx, pause)
		}
	}
	r.seen = now
	return nil
}

// rest waits for the given pause. It then waits until each overtaken consumer has made progress,
// but at most for progressWithin.
func (r *resting) rest(ctx context.Context, pause time.Duration) error {
	if err := pace.Sleep(ctx, pause); err != nil || r.ends == nil && !r.always {
		return err
	}
	for deadline := time.Now().Add(progressWithin); ; {
		now, err := r.load(ctx)
		if err != nil {
			return err
		}
		if !r.overtaken(ctx, now) || time.Now().After(deadline) {
			r.seen = now
			return nil
		}
		if err := pace.Sleep(ctx, progressEvery); err != nil {
			return err
		}
	}
}

// overtaken reports whether a consumer has claimed its partition again and its position has not
// changed, although the partition has unread records. If the ends are unknown, it assumes unread
// records.
func (r *resting) overtaken(ctx context.Context, now map[partitionOf]progress) bool {
	ends := map[string]map[int32]int64{}
	for p, before := range r.seen {
		at, exists := now[p]
		if !exists || at.fence == before.fence || at.next != before.next {
			continue
		}
		if r.ends == nil {
			return true
		}
		if ends[p.topic] == nil {
			ends[p.topic] = r.ends(ctx, p.topic)
		}
		if end, known := ends[p.topic][p.number]; known && at.next < end {
			return true
		}
	}
	return false
}

func (r *resting) load(ctx context.Context) (map[partitionOf]progress, error) {
	consumers := map[partitionOf]progress{}
	var (
		p  partitionOf
		at progress
	)
	into := []any{&p.group, &p.topic, &p.number, &at.fence, &at.next}
	err := readmodel.Patiently(ctx, func(ctx context.Context) error {
		clear(consumers)
		return readmodel.Each(ctx, r.pool, "look for progress of the consumers", r.pool.Tables.Query("repair_progress"), nil, into, func() error {
			consumers[p] = at
			return nil
		})
	})
	return consumers, err
}
