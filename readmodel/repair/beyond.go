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
	Of     accountdb.Beyond      // the account's range before the events were read
	First  []*projection.Parked  // events to park, sorted by version
	Rest   accountdb.BeyondRange // events still beyond the limit; ParkBeyond adds later ones
	Until  int64                 // the offset up to which the partition was read
	Events int                   // number of parked events; ParkBeyond sets it
	// HighestAt is the offset of the event with the range's highest version. It may be a discarded
	// event. It is Until if the event was not read.
	HighestAt int64
}

// ParkBeyond parks events that were beyond the park limit, and stores the range that is still
// beyond it. A consumer then applies the parked events. Events that an operator has discarded are
// left out, even if they were discarded after they were read. No event can be discarded during the
// transaction, because a discard locks the account, too.
func (r *Repair) ParkBeyond(ctx context.Context, a *ReadAgain, decisions *readmodel.Decisions) error {
	rest := a.Rest
	err := r.transact(ctx, func(ctx context.Context, tx *accountdb.Tx) error {
		if err := lockAccounts(ctx, tx, []string{a.Of.AccountID}); err != nil {
			return err
		}
		ranges, err := accountdb.LockBeyond(ctx, tx, []string{a.Of.AccountID})
		if err != nil {
			return err
		}
		if err := decisions.ReadIn(ctx, tx); err != nil {
			return err
		}
		parks := slices.DeleteFunc(slices.Clone(a.First), decisions.Discarded)
		a.Events = len(parks)
		if now, some := ranges[a.Of.AccountID]; some && now.FirstOffset != projection.NoOffset {
			if rest = a.rangeSince(&now); rest.Events == 0 {
				tx.Queue(tx.Tables.Query("overflow_forget"), a.Of.AccountID)
			} else {
				rest.Store(tx, a.Of.AccountID)
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

// rangeSince returns the range that is still beyond the park limit. Events that arrived after the
// partition was read are at the offset Until or later, and their versions are not known. An
// account's next event is never beyond the limit, so these versions are above it. The range is read
// again only after the account's next event was applied. The account may wait for that event for a
// long time.
func (a *ReadAgain) rangeSince(now *accountdb.BeyondRange) accountdb.BeyondRange {
	rest := a.Rest
	if now.FirstOffset == a.Of.FirstOffset && now.LastOffset == a.Of.LastOffset && a.Until > now.LastOffset {
		return rest
	}
	rest.Highest = now.Highest
	from := a.Until
	if rest.Events > 0 && rest.FirstOffset != projection.NoOffset {
		from = min(from, rest.FirstOffset)
	}
	if now.Highest == a.Of.Highest { // otherwise the next reading would count this version as a lost event
		from = min(from, a.HighestAt)
	}
	rest.Events, rest.Lowest = max(1, rest.Events+now.Events-a.Of.Events), now.Lowest
	rest.FirstOffset, rest.FirstVersion = from, a.Of.Version+2
	return rest
}
