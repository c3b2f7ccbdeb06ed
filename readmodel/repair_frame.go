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

const (
	// RepairEvents is the most events that one transaction of a repair decides, so that it holds
	// its locks only for a short time.
	RepairEvents = 2000
)

// PlanPiece is how many events are looked up at a time.
const PlanPiece = 5000

// RepairConfig is what a Repair needs.
type RepairConfig struct {
	Pool         *pgxpool.Pool
	Formats      event.Resolver
	FirstVersion int64
	// Rate bounds the records applied a second; 0: as fast as consumers allow.
	Rate int
	// Piece bounds the events one transaction decides about; 0: 2,000.
	Piece int
	// Ends reports whether records wait for a consumer that was overtaken, which Apply then
	// lets go on before its next transaction; nil: it only rests as long as it works.
	Ends Ends
}

// Ends returns the ends of a topic's partitions, as far as they can be read. It is called
// between the transactions of a repair, so it must not take long.
type Ends func(ctx context.Context, topic string) map[int32]int64

// RepairRecord is one record to decide about again. Its event is identified. Reprocessed is
// false for a record that was corrected.
type RepairRecord struct {
	projection.DecodedRecord
	FailedAt time.Time // when it was dead-lettered
	// Action is recorded with the record's effect as its result.
	Action Action
	// Decision is set when Decided: by Apply when it is durable, by Plan as it would be.
	Decision projection.Decision
	Decided  bool
	// Balance is set by Plan.
	Balance accounts.Balance
}

// Effect is what a decision means for a record that is replayed. Its names are
// public surface.
type Effect string

// The effects.
const (
	EffectApplied   Effect = "applied"
	EffectDuplicate Effect = "duplicate" // the read model has passed it
	EffectWaiting   Effect = "waiting"   // for a missing version
	EffectPoison    Effect = "poison"    // it cannot be applied as it is
)

// EffectOf returns what a decision means for a replayed record.
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

// Step is what one transaction of a repair has made durable.
type Step struct {
	Records int // decided about
	Healed  int // parked events applied
}

// Spread is how long so many records take at Rate; 0 without a rate.
func (cfg *RepairConfig) Spread(records int) time.Duration {
	if cfg.Rate == 0 {
		return 0
	}
	return time.Duration(records) * time.Second / time.Duration(cfg.Rate)
}

// pieces is work that is done in transactions of bounded size.
type pieces interface {
	// Do makes at most limit events durable, and reports whether there are more.
	Do(ctx context.Context, limit int) (step Step, more bool, err error)
	// Refuse notes that PostgreSQL refuses the one event that was done last; false when that
	// was noted before, or there is none.
	Refuse(reason string) bool
}

// InPieces does all of the work, and less of it at a time after a failure: one of the
// events is refused, or all of them together take too long. rest comes after each piece.
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
			if !smaller || alone && !refused || alone && !work.Refuse("PostgreSQL refused the row: "+errclass.Safe(err)) {
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
