package outbox

import (
	"context"
	"errors"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
)

// Outbox is what is asked, see Client.
type Outbox interface {
	Ask(ctx context.Context, wanted []Version, take func(event.Message) error) error
	Close()
}

const (
	// AskAtOnce is how many versions one question is for at most.
	AskAtOnce = 500
	// keepBytes bounds what is kept of one answer.
	keepBytes = 32 << 20
	// rowsEach bounds how many rows there may be for a version that was asked for: a query
	// that takes accounts and versions each for itself returns some that were not.
	rowsEach = 100
)

// Answer is what an outbox has of what it was asked for.
type Answer struct {
	Records map[Version]*readmodel.RepairRecord
	// Whole: all of it was read. What is missing otherwise has to be asked for again.
	Whole bool
	// Refused are the rows that were not asked for, and why the last of them was.
	Refused int
	Why     string
	Last    Version // of the last; without an account it cannot be read
}

// Fetch asks for versions and decodes what comes back. The first event of a version counts.
func Fetch(ctx context.Context, from Outbox, formats event.Resolver, wanted []Version) (Answer, error) {
	a := Answer{Records: make(map[Version]*readmodel.RepairRecord, len(wanted)), Whole: true}
	asked := make(map[Version]bool, len(wanted))
	for _, v := range wanted {
		asked[v] = true
	}
	rows, kept := 0, 0
	err := from.Ask(ctx, wanted, func(m event.Message) error {
		if rows++; rows > rowsEach*(len(wanted)+1) {
			return &QueryError{"--outbox-query (OUTBOX_QUERY): returns far more rows than were asked for: it must select by $1 and $2"}
		}
		format, err := formats.Resolve(ctx, m)
		if err != nil {
			return err
		}
		r := &readmodel.RepairRecord{}
		format.Decode(m, &r.Decoded)
		v := Version{r.Decoded.Event.AccountID, r.Decoded.Event.Version}
		if why := refusal(&r.Decoded, asked[v], a.Records[v] != nil); why != "" {
			if r.Decoded.Identity != event.Identified {
				v = Version{}
			}
			a.Refused, a.Why, a.Last = a.Refused+1, why, v
			return nil
		}
		r.Record = projection.Record{
			Message: m, Partition: -1, Offset: v.Number, LeaderEpoch: projection.NoEpoch, Timestamp: projection.NoTimestamp,
		}
		a.Records[v] = r
		if kept += r.Record.Bytes(); kept > keepBytes {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		a.Whole, err = false, nil
	}
	return a, err
}

// errEnough ends the reading of an answer that is too large to be kept.
var errEnough = errors.New("enough")

// refusal is why an event is not taken; empty when it is.
func refusal(d *event.Decoded, asked, twice bool) string {
	switch {
	case d.Tombstone:
		return "its value is null"
	case d.Identity != event.Identified && d.Fault != nil:
		return d.Fault.Error()
	case d.Identity != event.Identified:
		return "there is no event in it"
	case !asked:
		return "this account and version were not asked for"
	case twice:
		return "the outbox has another event of this account and version"
	default:
		return ""
	}
}

// Stamp sets what the audit trail says of a fetched event.
func Stamp(r *readmodel.RepairRecord, actor, reason string) {
	e := &r.Decoded.Event
	r.Action = readmodel.Action{
		Kind: readmodel.ActionFetch, AccountID: e.AccountID, Version: &e.Version, Actor: actor, Reason: reason, ValueSHA256: readmodel.ValueDigest(r.Record.Value),
	}
}
