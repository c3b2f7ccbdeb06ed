package accountdb

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"projector/projection"
	"projector/projection/event"
)

// LoadParked reads up to limit parked events of an account above a version, in order, and decodes
// them. If more is true, further parked events may exist.
func LoadParked(
	ctx context.Context, db DB, formats event.Resolver, account string, above int64, limit int,
) (parked []projection.Parked, more bool, err error) {
	rows, _ := db.Query(ctx, db.Tables.Query("load_parked"), account, above, limit, healBytes)
	var events int
	parked, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (projection.Parked, error) {
		var (
			p       projection.Parked
			version int64
			headers [][]byte
			r       = &p.Record
		)
		err := row.Scan(&version, &p.Class, &p.Expected, &r.Topic, &r.Partition, &r.Offset, &r.Timestamp, &r.Replays,
			&r.Key, &r.Value, &headers, &events)
		if err != nil {
			return p, err
		}
		r.Headers = unpackHeaders(headers)
		p.Decoded.Event.Version = version
		return p, nil
	})
	if err != nil {
		return nil, false, fmt.Errorf("load parked events: %w", err)
	}
	for i := range parked {
		if err := decodeParked(ctx, formats, account, &parked[i]); err != nil {
			return nil, false, err
		}
	}
	return parked, events == limit || events > len(parked), nil
}

func decodeParked(ctx context.Context, formats event.Resolver, account string, p *projection.Parked) error {
	format, err := formats.Resolve(ctx, p.Record.Message)
	if err != nil {
		return fmt.Errorf("read a parked event: %w", err)
	}
	version := p.Decoded.Event.Version
	if series, is := format.(event.Series); is {
		decodeEntry(series, account, version, p)
	} else {
		format.Decode(p.Record.Message, &p.Decoded)
	}
	if ev := &p.Decoded.Event; p.Decoded.Identity != event.Identified || ev.Version != version || ev.AccountID != account {
		// The event was parked with another format or configuration. With the present one, it may be
		// an event of another account. An operator has to decide about it.
		p.Decoded = unreadable(account, version)
	}
	return nil
}

// decodeEntry decodes the record's entry that has the given account and version. If several entries
// match, it uses the first one that can be decoded. If none can be decoded, it uses the first one.
// This entry is the one that was parked, because a decodable event replaces an event of the same
// version that cannot be decoded.
func decodeEntry(series event.Series, account string, version int64, p *projection.Parked) {
	var one event.Decoded
	check := func(entry int32) {
		ev := &one.Event
		if one.Identity != event.Identified || ev.AccountID != account || ev.Version != version {
			return
		}
		if p.Record.Entry == 0 || p.Decoded.Fault != nil && one.Fault == nil {
			p.Record.Entry, p.Decoded = entry, one
		}
	}
	p.Decoded, p.Record.Entry = event.Decoded{}, 0
	last := int32(0)
	series.DecodeEach(p.Record.Message, func(entry int32) *event.Decoded {
		check(last)
		last = entry
		return &one
	})
	check(last)
}

// unreadable returns an event that cannot be applied. It replaces a parked record from which the
// present --format and --mapping read no event, or an event of another account or version.
func unreadable(account string, version int64) event.Decoded {
	return event.Decoded{
		Event:    event.Event{AccountID: account, Version: version},
		Identity: event.Identified,
		Fault:    &event.Fault{Class: event.MalformedPayload, Reason: "with the present --format and --mapping, the parked event is no event of this account and version"},
	}
}

// queueParked queues the query park or park_instead for each event.
func queueParked(tx *Tx, query string, events []*projection.Parked) {
	for _, p := range events {
		ev, r := &p.Decoded.Event, &p.Record
		tx.Queue(tx.Tables.Query(query), ev.AccountID, ev.Version, string(p.Class), ev.ID, p.Expected,
			r.Topic, r.Partition, r.Offset, r.Timestamp, r.Replays, r.Key, r.Value, packHeaders(r.Headers))
	}
}

// packHeaders returns the keys and values of the headers alternately in one list. A null value
// stays null.
func packHeaders(headers []event.Header) [][]byte {
	packed := make([][]byte, 0, 2*len(headers))
	for _, h := range headers {
		packed = append(packed, []byte(h.Key), h.Value)
	}
	return packed
}

func unpackHeaders(packed [][]byte) []event.Header {
	headers := make([]event.Header, 0, len(packed)/2)
	for i := 0; i+1 < len(packed); i += 2 {
		headers = append(headers, event.Header{Key: string(packed[i]), Value: packed[i+1]})
	}
	return headers
}
