package repair

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"projector/errclass"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/accountdb"
	"projector/readmodel/accounts"
)

// PlanDiscard implements Replayer.
func (r *Repair) PlanDiscard(ctx context.Context, list []readmodel.Discard) ([]readmodel.Discarded, error) {
	result := make([]readmodel.Discarded, len(list))
	err := readmodel.Patiently(ctx, func(attempt context.Context) error {
		return r.findDiscards(attempt, r.db(), r.tables().Query("parked_places"), list, result)
	})
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	return result, nil
}

// Discard implements Replayer. It removes the events from the parked events, and writes the audit
// trail in the same transactions.
func (r *Repair) Discard(ctx context.Context, list []readmodel.Discard) ([]readmodel.Discarded, error) {
	result := make([]readmodel.Discarded, 0, len(list))
	consumers := resting{pool: r.db(), ends: r.cfg.Ends}
	if err := consumers.begin(ctx); err != nil {
		return nil, fmt.Errorf("discard: %w", err)
	}
	for rest := list; len(rest) > 0; {
		piece := rest[:someAccounts(rest)]
		rest = rest[len(piece):]
		done := make([]readmodel.Discarded, len(piece))
		err := r.transact(ctx, func(attempt context.Context, tx *accountdb.Tx) error {
			return r.discard(attempt, tx, piece, done)
		})
		if err != nil {
			return result, fmt.Errorf("discard: %w", err)
		}
		if result = append(result, done...); len(rest) == 0 {
			break
		}
		if err := consumers.rest(ctx, repairPause); err != nil {
			return result, err
		}
	}
	return result, nil
}

// someAccounts returns how many dead letters one transaction discards. These are the dead letters
// of a few accounts.
func someAccounts(list []readmodel.Discard) int {
	seen := map[string]bool{}
	for i := range list {
		if seen[list[i].AccountID] = true; len(seen) > repairAccounts || i == readmodel.RepairEvents {
			return i
		}
	}
	return len(list)
}

// discard removes parked events. It increases the fence of each partition of the projection, so
// that a consumer with decisions that are not written yet decides again. This includes the
// partitions that the parked event is not from, because the events of an account may be in several
// partitions. The consumer of any of them may be about to apply the parked event.
func (r *Repair) discard(ctx context.Context, tx *accountdb.Tx, list []readmodel.Discard, result []readmodel.Discarded) error {
	clear(result)
	var ids []string
	for i := range list {
		if d := &list[i]; d.AccountID != "" && d.Action.Topic != "" {
			ids = append(ids, d.AccountID)
		}
	}
	if len(ids) > 0 {
		readmodel.QueueFence(tx.Tx, tx.Tables.Projection, nil, nil)
		slices.Sort(ids)
		if err := lockAccounts(ctx, tx, slices.Compact(ids)); err != nil {
			return err
		}
		if err := r.findDiscards(ctx, tx.DB(), tx.Tables.Query("discard_parked"), list, result); err != nil {
			return err
		}
		if err := parkedSincePlan(list, result); err != nil {
			return err
		}
		if err := shrinkOverflow(ctx, tx, list, result); err != nil {
			return err
		}
		if err := r.parkInstead(ctx, tx, list, result); err != nil {
			return err
		}
	}
	var actions []readmodel.Action
	for i := range list {
		if !result[i].Passed {
			actions = append(actions, list[i].Action)
		}
	}
	readmodel.QueueActions(tx.Tx, actions)
	return tx.Send(ctx)
}

// parkedSincePlan returns an error if an event was parked after the plan. Only a new plan finds another
// event of its version, which is then parked instead.
func parkedSincePlan(list []readmodel.Discard, result []readmodel.Discarded) error {
	for i := range list {
		if d := &list[i]; d.NotParked && result[i].Removed {
			return errclass.Text(fmt.Sprintf("the event of account %q version %d was parked meanwhile; run the command again", d.AccountID, d.Version))
		}
	}
	return nil
}

// parkInstead parks the other events of the versions whose parked event was removed. It returns an error
// if one of them was discarded after the plan, because a new plan may find a third event. No event can
// be discarded during the transaction, because a discard locks the account, too.
func (r *Repair) parkInstead(ctx context.Context, tx *accountdb.Tx, list []readmodel.Discard, result []readmodel.Discarded) error {
	var parks []*projection.Parked
	for i := range list {
		if p := list[i].Instead; p != nil && result[i].Removed {
			parks = append(parks, p)
		}
	}
	if len(parks) == 0 {
		return nil
	}
	if err := r.cfg.Decisions.ReadIn(ctx, tx); err != nil {
		return err
	}
	for _, p := range parks {
		if ev := &p.Decoded.Event; r.cfg.Decisions.Discarded(p) {
			return errclass.Text(fmt.Sprintf("the event of account %q version %d that was to be parked instead was discarded meanwhile; run the command again", ev.AccountID, ev.Version))
		}
	}
	return accountdb.WriteChanges(ctx, tx, &accounts.Changes{Parks: parks})
}

// eventAt identifies an event in a topic. Several entries of a record have the same place.
type eventAt struct {
	accountID string
	version   int64
	place     projection.RecordRef
}

// findDiscards finds out which events are parked and which versions the read model has. The given
// statement may also remove the parked events.
func (r *Repair) findDiscards(ctx context.Context, db accountdb.DB, statement string, list []readmodel.Discard, result []readmodel.Discarded) error {
	n := len(list)
	ids, versions, topics := make([]string, n), make([]int64, n), make([]string, n)
	partitions, offsets := make([]int32, n), make([]int64, n)
	for i := range list {
		d := &list[i]
		ids[i], versions[i] = d.AccountID, d.Version
		topics[i], partitions[i], offsets[i] = d.Action.Topic, d.Action.Partition, d.Action.Offset
	}
	known, err := accountdb.LoadVersions(ctx, db, ids)
	if err != nil {
		return err
	}
	parked := map[eventAt]bool{}
	var e eventAt
	args := []any{ids, versions, topics, partitions, offsets}
	into := []any{&e.accountID, &e.version, &e.place.Topic, &e.place.Partition, &e.place.Offset}
	err = readmodel.Each(ctx, db, "look for parked events", statement, args, into, func() error { parked[e] = true; return nil })
	if err != nil {
		return err
	}
	for i := range list {
		d := &list[i]
		version, exists := known[d.AccountID]
		if d.Instead != nil {
			if d.Instead.Expected = r.cfg.FirstVersion; exists {
				d.Instead.Expected = version + 1
			}
		}
		result[i] = readmodel.Discarded{
			Removed: parked[eventAt{d.AccountID, d.Version, d.Place()}],
			Passed:  d.AccountID != "" && exists && d.Version <= version && d.Action.Class != event.VersionConflict,
		}
	}
	return nil
}

// withoutVersions returns the range b without the discarded versions, and whether events are left. The
// versions are sorted. A version occurs as often as records of it were discarded.
//
// The range has only the lowest and the highest version and the number of its events. An event that
// was read twice is counted twice, and a producer may have sent two events of one version. If it is
// not certain which events are left, the range keeps its highest version. It is then read again from
// the topic when it is the turn of its next event, or at once if no event may be left.
func withoutVersions(b accountdb.BeyondRange, versions []int64) (after accountdb.BeyondRange, some bool) {
	after = b
	for _, v := range versions {
		if v >= b.Lowest && v <= b.Highest {
			after.Events--
		}
	}
	versions = slices.Compact(versions)
	for _, v := range versions {
		if v == after.Lowest && v < after.Highest { // the highest version is removed below
			after.Lowest++
		}
	}
	for _, v := range slices.Backward(versions) {
		if v == after.Highest {
			after.Highest--
		}
	}
	noVersion, noEvent, readable := after.Lowest > after.Highest, after.Events <= 0, b.FirstOffset != projection.NoOffset
	after.Events = max(1, after.Events)
	switch {
	case noVersion && (noEvent || !readable):
		return after, false
	case !readable:
		return after, true
	case noVersion || noEvent:
		after.FirstVersion = accountdb.AtOnce
	}
	after.Lowest, after.Highest = min(after.Lowest, b.Highest), b.Highest
	return after, true
}

// shrinkOverflow removes from the ranges beyond the park limit those discarded events that are not
// parked.
func shrinkOverflow(ctx context.Context, tx *accountdb.Tx, list []readmodel.Discard, result []readmodel.Discarded) error {
	versions, seen := map[string][]int64{}, map[eventAt]bool{} // an event may have several dead letters
	for i := range list {
		d := &list[i]
		e := eventAt{d.AccountID, d.Version, d.Place()}
		if d.AccountID != "" && d.Action.Class != event.VersionConflict && !result[i].Removed && !result[i].Passed && !seen[e] {
			seen[e] = true
			versions[d.AccountID] = append(versions[d.AccountID], d.Version)
		}
	}
	if len(versions) == 0 {
		return nil
	}
	found, err := accountdb.LockBeyond(ctx, tx, slices.Sorted(maps.Keys(versions)))
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(found)) {
		slices.Sort(versions[id])
		before := found[id]
		switch after, some := withoutVersions(before, versions[id]); {
		case !some:
			tx.Queue(tx.Tables.Query("overflow_forget"), id)
		case after != before:
			after.Store(tx, id)
		}
	}
	return nil
}
