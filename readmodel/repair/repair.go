package repair

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"projector/projection"
	"projector/readmodel"
	"projector/readmodel/accountdb"
	"projector/readmodel/accounts"
	"projector/sql"
)

const (
	// repairAccounts is the largest number of accounts that one transaction of a repair locks.
	repairAccounts = 100
	// repairPause is the shortest pause between transactions.
	repairPause = 10 * time.Millisecond
)

// Repair applies records to the accounts while consumers run, by the same rules as a consumer. The
// records may be in any order. A repair may be interrupted and repeated.
//
// A transaction locks the accounts before it reads them. Each write of a consumer checks that the
// account still has the version from which the write was computed. So a consumer with pending
// changes to one of these accounts writes nothing and decides again. Other consumers continue. A
// repair publishes nothing. A parked event that cannot be applied is left to the consumer, which
// dead-letters it.
//
// A Repair is safe for concurrent use, but a RepairRecord is not.
type Repair struct {
	cfg          readmodel.RepairConfig
	projection   string
	customWriter accountdb.CustomWriter // nil for account_balance
}

// New returns a Repair of account_balance.
func New(cfg readmodel.RepairConfig) *Repair {
	return &Repair{cfg: cfg, projection: readmodel.BalanceName}
}

// NewCustom returns a Repair of an ordered custom projection. The parameter custom writes its
// events.
func NewCustom(cfg readmodel.RepairConfig, name string, custom accountdb.CustomWriter) *Repair {
	return &Repair{cfg: cfg, projection: name, customWriter: custom}
}

func (r *Repair) custom() bool { return r.projection != readmodel.BalanceName }

// Plan sets each record's Decision to the decision that Apply would make now. It changes nothing.
func (r *Repair) Plan(ctx context.Context, records []*readmodel.RepairRecord) error {
	if err := r.cfg.Decisions.Read(ctx); err != nil { // Apply then reads only the later ones
		return fmt.Errorf("plan: %w", err)
	}
	records = inOrder(records)
	store := r.storeOf(r.db())
	options := r.options()
	options.Balances = true
	fold := accounts.NewFold(options, &store)
	for piece := range slices.Chunk(records, readmodel.PlanPiece) {
		if err := planSome(ctx, fold, piece); err != nil {
			return fmt.Errorf("plan: %w", err)
		}
	}
	changes := fold.Gather()
	for i, decision := range changes.Decisions {
		records[i].Decision, records[i].Balance = decision, changes.Balances[i]
	}
	return nil
}

func planSome(ctx context.Context, fold *accounts.Fold, records []*readmodel.RepairRecord) error {
	ctx, cancel := context.WithTimeout(ctx, readmodel.RepairAttempt)
	defer cancel()
	_, err := fold.Apply(ctx, decoded(records), math.MaxInt)
	return err
}

// Apply applies the records in transactions of bounded size, with pauses in between. After each
// transaction it calls observe, which may be nil. An error does not undo the committed
// transactions. To continue, apply the same records again.
func (r *Repair) Apply(ctx context.Context, records []*readmodel.RepairRecord, observe func(readmodel.Step)) error {
	if len(records) == 0 { // a login that may only read must not lock anything
		return nil
	}
	return r.run(ctx, &replay{repair: r, records: inOrder(records)}, observe)
}

func (r *Repair) run(ctx context.Context, p *replay, observe func(readmodel.Step)) error {
	p.store = r.storeOf(r.db())
	p.fold = accounts.NewFold(r.options(), &p.store)
	consumers := resting{pool: r.db(), ends: r.cfg.Ends}
	if err := consumers.begin(ctx); err != nil {
		return fmt.Errorf("repair: %w", err)
	}
	return readmodel.InPieces(ctx, r.cfg, p, func(step readmodel.Step, took time.Duration, more bool) error {
		if observe != nil {
			observe(step)
		}
		if !more {
			return ctx.Err()
		}
		return consumers.rest(ctx, r.pause(step, took))
	})
}

func (r *Repair) tables() *sql.Accounts {
	return sql.AccountsOf(r.projection)
}

// The method in returns the action with the name of this projection.
func (r *Repair) in(a readmodel.Action) readmodel.Action {
	return a.In(r.projection, r.custom())
}

func (r *Repair) db() accountdb.DB { return accountdb.Of(r.cfg.Pool, r.projection) }

func (r *Repair) options() accounts.Options {
	return accounts.Options{FirstVersion: r.cfg.FirstVersion, Replay: true, Custom: r.customWriter != nil}
}

// pause returns how long a repair pauses after a transaction. The pause is at least as long as the
// transaction took, so that consumers have at least half of the time.
func (r *Repair) pause(step readmodel.Step, took time.Duration) time.Duration {
	return max(took, repairPause, r.cfg.Spread(step.Records)-took)
}

func (r *Repair) storeOf(db accountdb.DB) accountdb.Store {
	return accountdb.Store{DB: db, Formats: r.cfg.Formats, FirstVersion: r.cfg.FirstVersion}
}

// ReplayStatuses implements Replayer.
func (r *Repair) ReplayStatuses(ctx context.Context, subjects []readmodel.Subject) ([]projection.ReplayStatus, error) {
	var ids []string
	for i := range subjects {
		if id := subjects[i].AccountID; readmodel.CanStore(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	states, err := accountdb.LoadStates(ctx, r.db(), slices.Compact(ids))
	if err != nil {
		return nil, err
	}
	statuses := make([]projection.ReplayStatus, len(subjects))
	for i := range subjects {
		s := &subjects[i]
		state, known := states[s.AccountID]
		if !known {
			state = projection.NewAccount(r.cfg.FirstVersion)
		}
		statuses[i] = state.ReplayStatusOf(s.Version, s.Decoded)
	}
	return statuses, nil
}
