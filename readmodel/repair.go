package readmodel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/errclass"
	"projector/projection"
	"projector/projection/event"
)

const (
	// repairRuns is how many accounts one transaction of a repair locks.
	repairRuns = 100
	// repairEvents is how many events it decides: none may hold its locks for long.
	repairEvents = 2000
	// repairAttempt is the deadline of one transaction.
	repairAttempt = 10 * time.Second
	// repairPatience is how long a failing transaction is tried again: a tool that
	// a person waits for must fail, not hang.
	repairPatience = 12 * time.Second
	// repairPause is the shortest rest between transactions.
	repairPause = 10 * time.Millisecond
)

// RepairConfig is what a Repair needs.
type RepairConfig struct {
	Pool         *pgxpool.Pool
	Formats      event.Resolver
	FirstVersion int64
	// Rate bounds the records applied a second; 0: as fast as consumers allow.
	Rate int
	// Piece bounds the events one transaction judges; 0: 2,000.
	Piece int
	// Ends tells whether anything waits for a consumer that was overtaken, which Apply then
	// lets go on before its next transaction; nil: it only rests as long as it works.
	Ends Ends
}

// Repair applies records to the balances directly, by the same rules as a
// consumer and beside running consumers: in any order, repeatedly, interrupted.
//
// A transaction locks the accounts, and only then reads what it decides on. A consumer
// whose changes were made of an account as it was before writes none of them: each
// write compares the version it was made of. Consumers that have nothing pending on
// these accounts go on. A repair publishes nothing: a parked event that cannot be
// applied when its turn comes is left to the consumer, which dead-letters it.
//
// A Repair is safe for concurrent use; a Run is not.
type Repair struct{ cfg RepairConfig }

// NewRepair returns a Repair.
func NewRepair(cfg RepairConfig) *Repair { return &Repair{cfg: cfg} }

// RepairRecord is one record to judge again. Its event is identified.
type RepairRecord struct {
	projection.Judgeable
	// JudgedBefore: as for State.Judge. False for a record that was corrected.
	JudgedBefore bool
	FailedAt     time.Time // when it was dead-lettered
	// Action is recorded with the record's effect as its result.
	Action Action
	// Verdict is set when Judged: by Apply when it is durable, by Plan as it would be.
	Verdict projection.Verdict
	Judged  bool
}

// Run is what a repair does to one account: its records in the order of their
// versions, and the parked events that then fit. Without records it heals only.
type Run struct {
	AccountID string
	records   []*RepairRecord
	next      int // the first record not judged
	done      bool
	// What PostgreSQL has refused of this run, and why.
	refused       map[*RepairRecord]string
	refusedParked map[int64]string
}

// NewRun returns a run that heals an account.
func NewRun(account string) *Run { return &Run{AccountID: account} }

// Done reports whether there is nothing left to do.
func (r *Run) Done() bool { return r.done }

// Runs groups records by account, those of one partition together. Records of one
// version keep their order.
func Runs(records []*RepairRecord) []*Run {
	byAccount := map[string]*Run{}
	var runs []*Run
	for _, rec := range records {
		id := rec.Decoded.Event.AccountID
		run := byAccount[id]
		if run == nil {
			run = NewRun(id)
			byAccount[id] = run
			runs = append(runs, run)
		}
		run.records = append(run.records, rec)
	}
	for _, run := range runs {
		slices.SortStableFunc(run.records, func(a, b *RepairRecord) int {
			return cmp.Compare(a.Decoded.Event.Version, b.Decoded.Event.Version)
		})
	}
	slices.SortFunc(runs, func(a, b *Run) int {
		x, y := &a.records[0].Record, &b.records[0].Record
		return cmp.Or(strings.Compare(x.Topic, y.Topic), cmp.Compare(x.Partition, y.Partition),
			strings.Compare(a.AccountID, b.AccountID))
	})
	return runs
}

// Effect is what a verdict means for a record that is replayed. Its names are
// public surface.
type Effect string

// The effects.
const (
	EffectApplied   Effect = "applied"
	EffectDuplicate Effect = "duplicate" // the read model has passed it
	EffectWaiting   Effect = "waiting"   // behind a hole
	EffectPoison    Effect = "poison"    // it cannot be applied as it is
)

// EffectOf tells what a verdict means.
func EffectOf(v projection.Verdict) Effect {
	switch {
	case v.Outcome == projection.Duplicate:
		return EffectDuplicate
	case v.Outcome != projection.DeadLettered:
		return EffectApplied
	case v.Class == event.VersionGap:
		return EffectWaiting
	default:
		return EffectPoison
	}
}

// Step is what one transaction of a repair has made durable.
type Step struct {
	Records int // judged
	Healed  int // parked events applied
}

// Apply applies the runs, in transactions of bounded size with rests in between,
// and tells observe, which may be nil, of each. What was committed before an error
// stays; to go on, apply the same records again.
func (r *Repair) Apply(ctx context.Context, runs []*Run, observe func(Step)) error {
	most := cmp.Or(r.cfg.Piece, repairEvents)
	if r.cfg.Rate > 0 {
		most = min(most, r.cfg.Rate)
	}
	size := most // of a transaction: smaller after each that failed
	consumers := resting{pool: r.cfg.Pool, ends: r.cfg.Ends}
	if err := consumers.begin(ctx); err != nil {
		return fmt.Errorf("repair: %w", err)
	}
	for rest := slices.Clone(runs); len(rest) > 0; {
		start := time.Now()
		folds, err := r.transact(ctx, rest[:min(len(rest), repairRuns, size)], size)
		if err != nil {
			if !smallerHelps(err) || size == 1 && !refuse(folds, err) {
				return fmt.Errorf("repair: %w", err)
			}
			size = max(1, size/8)
			continue
		}
		step := settle(folds)
		if observe != nil {
			observe(step)
		}
		rest = slices.DeleteFunc(rest, (*Run).Done)
		if len(rest) == 0 {
			return ctx.Err()
		}
		if err := consumers.rest(ctx, r.pause(step, time.Since(start))); err != nil {
			return err
		}
		size = min(2*size, most)
	}
	return nil
}

// smallerHelps reports whether a transaction may succeed with fewer events: one of them
// is refused, or all of them together take too long.
func smallerHelps(err error) bool {
	return errclass.Postgres(err) == errclass.Isolate || errors.Is(err, context.DeadlineExceeded) || hasCode(err, queryCanceled)
}

// refuse notes that PostgreSQL refuses the one event that was folded; false when that is
// not so, or was noted before.
func refuse(folds []*repairFold, err error) bool {
	return errclass.Postgres(err) == errclass.Isolate && len(folds) == 1 && folds[0].last != nil &&
		folds[0].last("PostgreSQL refused the row: "+errclass.Safe(err))
}

// settle takes note that what was folded is durable.
func settle(folds []*repairFold) (step Step) {
	for _, f := range folds {
		f.settle()
		step.Records += len(f.verdicts)
		step.Healed += f.healed
	}
	return step
}

// pause is how long a repair rests at least after a transaction: as long as it took, so
// that consumers have half of the time.
func (r *Repair) pause(step Step, took time.Duration) time.Duration {
	pause := max(took, repairPause)
	if r.cfg.Rate > 0 {
		pause = max(pause, time.Duration(step.Records)*time.Second/time.Duration(r.cfg.Rate)-took)
	}
	return pause
}

// patiently is persistently with a deadline for each try.
func patiently(ctx context.Context, fn func(context.Context) error) error {
	return persistently(ctx, func(ctx context.Context) error {
		attempt, cancel := context.WithTimeout(ctx, repairAttempt)
		defer cancel()
		return fn(attempt)
	})
}

// persistently repeats fn while its failure may be a passing one, for a while.
func persistently(ctx context.Context, fn func(context.Context) error) error {
	giveUp := time.Now().Add(repairPatience)
	for pause := 50 * time.Millisecond; ; pause *= 2 {
		err := fn(ctx)
		if err == nil || ctx.Err() != nil || !passing(err) || time.Now().Add(pause).After(giveUp) {
			return err
		}
		if err := wait(ctx, pause); err != nil {
			return err
		}
	}
}

// passing reports whether the same may work at the next try.
func passing(err error) bool {
	if errors.Is(err, projection.ErrStale) {
		return true
	}
	class := errclass.Postgres(err)
	return class == errclass.Retry || class == errclass.RetryReset
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
