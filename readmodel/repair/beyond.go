package repair

import (
	"context"
	"fmt"
	"slices"

	"projector/projection"
	"projector/readmodel"
	"projector/readmodel/accountdb"
	"projector/readmodel/accounts"
)

// ReadAgain has the events of an account that were beyond the park limit and were read again.
type ReadAgain struct {
	Of     accountdb.Beyond     // as it was before the reading
	First  []*projection.Parked // to be parked, sorted by version
	Rest   BeyondRest           // what is left; ParkBeyond adds what came since
	Until  int64                // the offset up to which the partition was read
	Events int                  // number of parked events; ParkBeyond sets it
}

// BeyondRest is what is still beyond the park limit.
type BeyondRest struct {
	Events        int64 // 0: nothing is
	LowestVersion int64
	// FirstOffset and FirstVersion are where to read again; nil: only a replay applies these events.
	FirstOffset, FirstVersion *int64
}

// ParkBeyond parks events that were beyond the park limit, and stores what still is. A consumer heals
// the parked events. Events that a person has discarded are left out, also if that happened since they
// were read: a discard locks the account, too.
func (r *Repair) ParkBeyond(ctx context.Context, a *ReadAgain, decisions *readmodel.Decisions) error {
	rest := a.Rest
	err := r.transact(ctx, func(ctx context.Context, tx *accountdb.Tx) error {
		if err := lockAccounts(ctx, tx, []string{a.Of.AccountID}); err != nil {
			return err
		}
		now, err := accountdb.LockBeyond(ctx, tx.DB(), a.Of.AccountID)
		if err != nil {
			return err
		}
		if err := decisions.ReadIn(ctx, tx); err != nil {
			return err
		}
		parks := slices.DeleteFunc(slices.Clone(a.First), func(p *projection.Parked) bool {
			event := []projection.DecodedRecord{{Record: p.Record, Decoded: p.Decoded}}
			decisions.MarkDiscarded(event)
			return event[0].Discarded
		})
		a.Events = len(parks)
		if now != nil {
			if rest = a.Rest.since(a, now); rest.Events == 0 {
				tx.Queue(tx.Tables.Query("overflow_forget"), a.Of.AccountID)
			} else {
				tx.Queue(tx.Tables.Query("overflow_parked"), a.Of.AccountID, rest.LowestVersion, rest.Events, rest.FirstOffset, rest.FirstVersion)
			}
		}
		return r.write(ctx, tx, &accounts.Changes{Parks: parks}, nil)
	})
	if err != nil {
		return fmt.Errorf("park events that were beyond the park limit: %w", err)
	}
	a.Rest = rest
	return nil
}

// since returns what is left if the account has had more events beyond the limit since. They are at
// Until or later, and their versions are not known.
func (b BeyondRest) since(a *ReadAgain, now *accountdb.BeyondRange) BeyondRest {
	if *now == a.Of.BeyondRange && a.Until > now.LastOffset {
		return b
	}
	from, version := a.Until, a.Of.Version+1
	if b.FirstOffset != nil {
		from = min(from, *b.FirstOffset)
	}
	return BeyondRest{
		Events: max(1, b.Events+now.Events-a.Of.Events), LowestVersion: now.Lowest,
		FirstOffset: &from, FirstVersion: &version,
	}
}
