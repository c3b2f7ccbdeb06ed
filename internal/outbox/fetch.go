package outbox

import (
	"context"
	"errors"

	"projector/errclass"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
)

// Outbox is implemented by Client.
type Outbox interface {
	Ask(ctx context.Context, wanted []Version, receive Receive) error
	Close()
}

// Receive is called with each message of a result. If a row cannot be read, the reason says why, and
// the message is empty. An error ends the query.
type Receive func(m event.Message, reason string) error

const (
	// AskAtOnce is the maximum number of versions in one query.
	AskAtOnce = 500
	// keepBytes limits the memory for the events of one result, in bytes.
	keepBytes = 32 << 20
	// rowsEach limits the rows for each requested version. This limit is high, because a query may
	// select accounts and versions independently, and then it also returns rows that were not
	// requested.
	rowsEach = 100
)

// Answer contains the events that an outbox has returned.
type Answer struct {
	Records map[Version]*readmodel.RepairRecord
	// Asked has the versions that the answer is about. These are the first of the wanted versions,
	// and all of them unless their events are too large for one answer.
	Asked map[Version]bool
	// Refused is the number of rows in which no requested event can be used. Why and Last describe
	// the last of these rows.
	Refused int
	Why     string
	Last    Version // the account id is empty if the event could not be read

	// Contradicted has the versions for which the outbox has different events.
	Contradicted map[Version]bool
}

// Contradiction is the reason why an event of a version in Answer.Contradicted is not used.
const Contradiction = "the outbox has different events of this account and version"

// Fetch queries the outbox for versions and decodes the result. If the events of all versions are
// too large for the memory of one result, Fetch queries at most half as many versions. It uses only
// a result that it has read to its end. If the result contains different events for one version,
// none of them is used, because the order of the rows does not show which one is right. The
// parameter by has the actor, the reason and the group for the audit trail.
func Fetch(ctx context.Context, from Outbox, formats event.Resolver, by readmodel.Action, wanted []Version) (Answer, error) {
	for {
		answer, err := fetchAll(ctx, from, formats, by, wanted)
		if !errors.Is(err, errTooLarge) {
			return answer, err
		}
		wanted = wanted[:min(len(answer.Records)-1, len(wanted)/2)]
	}
}

// fetchAll is Fetch for a result that must fit into memory. Otherwise it returns errTooLarge.
func fetchAll(ctx context.Context, from Outbox, formats event.Resolver, by readmodel.Action, wanted []Version) (Answer, error) {
	a := Answer{Records: make(map[Version]*readmodel.RepairRecord, len(wanted)), Asked: make(map[Version]bool, len(wanted)), Contradicted: map[Version]bool{}}
	for _, v := range wanted {
		a.Asked[v] = true
	}
	rows, kept := 0, 0
	err := from.Ask(ctx, wanted, func(m event.Message, reason string) error {
		if rows++; rows > rowsEach*(len(wanted)+1) {
			return errclass.Text("--outbox-query (OUTBOX_QUERY): returns far more rows than were asked for: it must select by $1 and $2")
		}
		if reason != "" {
			a.Refused, a.Why, a.Last = a.Refused+1, reason, Version{}
			return nil
		}
		format, err := formats.Resolve(ctx, m)
		if err != nil {
			return err
		}
		kept += a.add(format, m, by)
		if kept > keepBytes && len(a.Records) > 1 {
			return errTooLarge
		}
		return nil
	})
	return a, err
}

// add stores the requested events of a row and returns their size in bytes. A row may contain
// several events. The row counts as refused if none of its events could be stored, unless they were
// stored from an equal row before. An event that was stored is removed again, and its row counts as
// refused, if another row contradicts it.
func (a *Answer) add(format event.Format, m event.Message, by readmodel.Action) (kept int) {
	record := projection.Record{Message: m, Partition: projection.NoPartition, LeaderEpoch: projection.NoEpoch, Timestamp: projection.NoTimestamp}
	events := projection.AppendDecoded(nil, record, format)
	var (
		why   string
		last  Version
		known bool
	)
	for i := range events {
		r := &readmodel.RepairRecord{DecodedRecord: events[i]}
		v := Version{r.Decoded.Event.AccountID, r.Decoded.Event.Version}
		if before := a.Records[v]; before != nil {
			if isSame(before, r) {
				known = true
				continue
			}
			delete(a.Records, v)
			a.Contradicted[v], a.Refused = true, a.Refused+1
		}
		if reason := refusal(&r.Decoded, a.Asked[v], a.Contradicted[v]); reason != "" {
			if r.Decoded.Identity != event.Identified {
				v = Version{}
			}
			why, last = reason, v
			continue
		}
		r.Record.Offset = v.Number
		r.Action = by
		r.Action.Kind, r.Action.AccountID, r.Action.Version = readmodel.ActionFetch, v.AccountID, &r.Decoded.Event.Version
		r.Action.ValueSHA256 = readmodel.ValueDigest(r.Record.Value)
		a.Records[v] = r
		kept += r.Record.Bytes()
	}
	if kept == 0 && !known {
		a.Refused, a.Why, a.Last = a.Refused+1, why, last
	}
	return kept
}

// isSame reports whether two rows contain the same event.
func isSame(a, b *readmodel.RepairRecord) bool {
	return a.Decoded.Event == b.Decoded.Event && (a.Decoded.Fault == nil) == (b.Decoded.Fault == nil)
}

// errTooLarge ends reading when a result with several events is larger than keepBytes.
var errTooLarge = errors.New("too large")

// refusal returns the reason why an event is not accepted, or "" if it is accepted.
func refusal(d *event.Decoded, asked, contradicted bool) string {
	switch {
	case d.Tombstone:
		return "its value is null"
	case d.Identity != event.Identified && d.Fault != nil:
		return d.Fault.Error()
	case d.Identity != event.Identified:
		return "there is no event in it"
	case !asked:
		return "this account and version were not asked for"
	case contradicted:
		return Contradiction
	default:
		return ""
	}
}
