package readmodel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/errclass"
	"projector/internal/pace"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel/accounts"
)

// RepairEvents is about the largest number of events in one transaction of a repair, unless
// RepairConfig.Piece is set. With this limit, the transaction holds its locks only for a short
// time.
const RepairEvents = 2000

// PlanPiece is the largest number of events that one query looks up.
const PlanPiece = 5000

// RepairConfig is the configuration of a repair.
type RepairConfig struct {
	Pool         *pgxpool.Pool
	Formats      event.Resolver
	FirstVersion int64
	// Rate limits the records applied per second. 0 means as fast as consumers allow.
	Rate int
	// Piece limits the events of one transaction. 0 means RepairEvents.
	Piece int
	// Ends shows whether records wait for a consumer whose fence the repair has increased. Apply
	// then lets that consumer continue before its next transaction. If Ends is nil, Apply only
	// pauses for as long as its transactions take.
	Ends Ends
	// Decisions has the events that operators have discarded. Apply ends with an error before it
	// applies one of them, unless RepairRecord.Revokes is set.
	Decisions *Decisions
}

// Ends returns the end offsets of a topic's partitions, as far as they can be read. It is called
// between the transactions of a repair, so it must be fast.
type Ends func(ctx context.Context, topic string) map[int32]int64

// RepairRecord is a record that a repair decides about again. Its event is identified, so its id,
// account and version are known. Reprocessed is false if the record was corrected.
type RepairRecord struct {
	projection.DecodedRecord
	FailedAt time.Time // when it was dead-lettered
	Revokes  bool      // it is applied although its event was discarded
	// Action is recorded in the audit trail, with the record's effect as its result.
	Action Action
	// Decision is valid if Decided is true. Apply sets Decision when the decision is durable. Plan
	// sets Decision to what Apply would decide.
	Decision projection.Decision
	Decided  bool
	// Plan sets Balance if the projection orders events by account.
	Balance accounts.Balance
}

// Effect is the result of replaying a record. The names are part of the public interface.
type Effect string

// These are the possible effects of a replayed record.
const (
	EffectApplied   Effect = "applied"
	EffectDuplicate Effect = "duplicate" // the read model has this version already
	EffectWaiting   Effect = "waiting"   // the event waits for a missing version
	EffectPoison    Effect = "poison"    // the event cannot be applied unless somebody corrects it
)

// EffectOf returns the effect of a decision about a replayed record.
func EffectOf(v projection.Decision) Effect {
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

// Step counts what one transaction of a repair has committed.
type Step struct {
	Records int // records about which the repair has decided
	Healed  int // parked events applied
}

// Spread returns the time that this number of records takes at Rate. Without a rate it is 0.
func (cfg *RepairConfig) Spread(records int) time.Duration {
	if cfg.Rate == 0 {
		return 0
	}
	return time.Duration(records) * time.Second / time.Duration(cfg.Rate)
}

// pieces is work that is split into transactions of bounded size.
type pieces interface {
	// Do commits a piece of about limit events and reports whether there are more. With limit 1,
	// the piece is one event.
	Do(ctx context.Context, limit int) (step Step, more bool, err error)
	// Refuse is called after PostgreSQL has refused the event that Do tried with limit 1. It
	// returns false if there is no such event, or if the event was refused before.
	Refuse(reason string) bool
}

// InPieces does all of the work, one piece after the other. If PostgreSQL refuses an event of a
// piece, or if the piece takes too long, the next piece is smaller. After each committed piece,
// InPieces calls the function rest.
func InPieces(ctx context.Context, cfg RepairConfig, work pieces, rest func(step Step, took time.Duration, more bool) error) error {
	most := cmp.Or(cfg.Piece, RepairEvents)
	if cfg.Rate > 0 {
		most = min(most, cfg.Rate)
	}
	size := pace.NewSize(most, most, RepairAttempt/2)
	for more := true; more; {
		var (
			step  Step
			err   error
			start = time.Now()
			limit = size.Limit()
		)
		if step, more, err = work.Do(ctx, limit); err != nil {
			refused := errclass.Postgres(err) == errclass.Isolate
			smaller := refused || errors.Is(err, context.DeadlineExceeded) || HasCode(err, queryCanceled)
			alone := limit == 1
			if !smaller || alone && !refused || alone && !work.Refuse(errclass.RefusedRow(err)) {
				return fmt.Errorf("repair: %w", err)
			}
			size.Failed(limit, 0, time.Since(start))
			more = true
			continue
		}
		size.Wrote(limit, time.Since(start))
		if err := rest(step, time.Since(start), more); err != nil {
			return err
		}
	}
	return nil
}
