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
	// keepBytes bounds what is stored of one answer.
	keepBytes = 32 << 20
	// rowsEach bounds the rows per requested version: a query that selects accounts and versions
	// independently also returns rows that were not requested.
	rowsEach = 100
)

// Answer is what an outbox has of what it was asked for.
type Answer struct {
	Records map[Version]*readmodel.RepairRecord
	// Whole reports whether the whole answer was read. If not, missing versions have to be asked
	// for again.
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
		if kept += a.add(format, m, asked); kept > keepBytes {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		a.Whole, err = false, nil
	}
	return a, err
}

// add keeps the events of a row that were asked for, and returns the bytes that takes. A row is
// refused when none of its entries was asked for. It may come again for another of them.
func (a *Answer) add(format event.Format, m event.Message, asked map[Version]bool) (kept int) {
	record := projection.Record{Message: m, Partition: -1, LeaderEpoch: projection.NoEpoch, Timestamp: projection.NoTimestamp}
	events := projection.AppendDecoded(nil, record, format)
	var (
		why   string
		last  Version
		known bool
	)
	for i := range events {
		r := &readmodel.RepairRecord{DecodedRecord: events[i]}
		v := Version{r.Decoded.Event.AccountID, r.Decoded.Event.Version}
		if before := a.Records[v]; before != nil && r.Record.Entry > 0 && before.Decoded.Event.ID == r.Decoded.Event.ID {
			known = true
			continue
		}
		if reason := refusal(&r.Decoded, asked[v], a.Records[v] != nil); reason != "" {
			if r.Decoded.Identity != event.Identified {
				v = Version{}
			}
			why, last = reason, v
			continue
		}
		r.Record.Offset = v.Number
		a.Records[v] = r
		kept += r.Record.Bytes()
	}
	if kept == 0 && !known {
		a.Refused, a.Why, a.Last = a.Refused+1, why, last
	}
	return kept
}

// errEnough ends the reading of an answer that is too large to be stored.
var errEnough = errors.New("enough")

// refusal is why an event is not accepted; empty when it is.
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
