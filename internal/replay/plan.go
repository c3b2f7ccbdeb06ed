package replay

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"projector/dlq"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
)

// Item is one dead letter to replay.
type Item struct {
	*DeadLetter
	Event
	why string // reason of the plan or result; empty if Record.Decision has the reason
}

// Reason returns the reason of the plan. This reason may differ from the reason for which the event
// was dead-lettered.
func (i *Item) Reason() string {
	why := i.planReason()
	switch {
	case !i.NotInTopic:
		return why
	case why == "":
		return notInTopic
	default:
		return notInTopic + "; " + why
	}
}

func (i *Item) planReason() string {
	switch {
	case i.why != "":
		return i.why
	case i.Record != nil && i.Record.Decision.Message != "":
		return i.Record.Decision.Message
	case i.Plan == PlanDuplicate:
		return "the read model has this version"
	default:
		return ""
	}
}

// Replay plans and executes a replay of dead letters.
type Replay struct {
	Store      Store
	Actor      string // for the audit trail
	Reason     string // the actor's reason for the replay
	MaxReplays int    // a dead letter that was replayed this many times is refused
	Limit      int    // plan at most this many, sorted by account and version; 0 means all
	ToTopic    string // topic to publish to; empty means that they are applied
	Rate       int    // publish at most this many records per second; 0 means no limit

	Items []*Item
}

func (r *Replay) events() (all events) {
	for _, item := range r.Items {
		all = append(all, &item.Event)
	}
	return all
}

// Failed returns how many items should have been applied or published but were not.
func (r *Replay) Failed() int { return r.events().failed() }

// Add adds a dead letter. It drops the payload of a resolved dead letter, because the payload is
// not needed.
func (r *Replay) Add(d *DeadLetter) error {
	if d.Status == dlq.Resolved && r.ToTopic == "" {
		d.Entry.Key, d.Entry.Value, d.Entry.Headers = nil, nil, nil
	}
	d.Entry.EventID = cmp.Or(d.Decoded.Event.ID, d.Entry.EventID) // so both fields share one text in memory
	d.Entry.AccountID = cmp.Or(d.Decoded.Event.AccountID, d.Entry.AccountID)
	r.Items = append(r.Items, &Item{DeadLetter: d})
	if r.Limit > 0 && len(r.Items) >= 2*r.Limit+ChunkRecords {
		r.order() // drop items above the limit to save memory
	}
	return nil
}

// order sorts by account and version and drops the items above the limit.
func (r *Replay) order() {
	slices.SortStableFunc(r.Items, func(a, b *Item) int {
		x, y := &a.Entry, &b.Entry
		return cmp.Or(strings.Compare(x.AccountID, y.AccountID), compareVersions(x.Received, y.Received),
			cmp.Compare(x.DLQPartition, y.DLQPartition), cmp.Compare(x.DLQOffset, y.DLQOffset))
	})
	if r.Limit > 0 && len(r.Items) > r.Limit {
		clear(r.Items[r.Limit:])
		r.Items = r.Items[:r.Limit]
	}
}

// compareVersions sorts unknown versions first.
func compareVersions(a, b *int64) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	default:
		return cmp.Compare(*a, *b)
	}
}

// Plan sorts the items and sets the plan of each item. The method planLocally makes the plans that
// need no database. The database makes the other plans, but is not changed.
func (r *Replay) Plan(ctx context.Context) error {
	r.order()
	for _, item := range r.Items {
		if item.planLocally(r.MaxReplays, r.ToTopic != ""); item.Plan == "" {
			item.Record = &readmodel.RepairRecord{
				DecodedRecord: item.decodedRecord(), FailedAt: item.Entry.FailedAt, Revokes: item.discarded,
			}
		}
	}
	return r.events().plan(ctx, r.Store)
}

// planLocally sets the plan of a dead letter if this needs no database. A dead letter that is one
// of several events in a record is not published again, because the record's other events may have
// been applied.
func (i *Item) planLocally(maxReplays int, publish bool) {
	e, d := &i.Entry, &i.Decoded
	conflict := e.Class == event.VersionConflict && !i.Corrected
	switch {
	case publish && e.Event > 0:
		i.Plan, i.Result, i.why = PlanPoison, readmodel.ResultRefused, "it is an entry of a record with several events, and --to-topic would publish them all; leave out --to-topic"
	case i.Status == dlq.Resolved && d.Identity != event.Identified:
		i.Plan = PlanDuplicate
	case e.Truncated:
		i.Plan, i.why = PlanPoison, dlq.ErrTruncated.Error()
	case d.Identity != event.Identified:
		i.Plan, i.why = PlanPoison, i.noEvent()
	case conflict:
		i.Plan, i.why = PlanPoison, "another event was applied at this version"
	case i.Replays >= maxReplays && i.Status != dlq.Resolved:
		i.Plan, i.Result, i.why = PlanPoison, readmodel.ResultRefused, "it has been replayed too often, see --max-replays"
	}
}

// decodedRecord returns the original record.
func (d *DeadLetter) decodedRecord() projection.DecodedRecord {
	e := &d.Entry
	return projection.DecodedRecord{
		Decoded: d.Decoded, Reprocessed: !d.Corrected,
		Record: projection.Record{
			Message: e.Original(),
			Topic:   e.Topic, Partition: e.Partition, Offset: e.Offset, Timestamp: e.Timestamp, Replays: d.Replays + 1,
		},
	}
}
