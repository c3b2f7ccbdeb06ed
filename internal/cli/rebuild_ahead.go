package cli

import (
	"context"
	"maps"
	"slices"
	"strings"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
)

// spareAtOnce is how many accounts are looked up at a time that have later events.
const spareAtOnce = 5000

// lookAhead spares the accounts that seem unknown because the consumers have not come
// to their events yet, or not again: their positions may have been deleted.
func (r *rebuilding) lookAhead(ctx context.Context, report *readmodel.RebuildReport) error {
	if report.Kinds[readmodel.RebuildUnknown] == 0 {
		return nil
	}
	now, err := r.source.extent(ctx)
	if err != nil {
		return err
	}
	for number, end := range now.ends {
		if err := r.lookAheadIn(ctx, report, number, end); err != nil {
			return err
		}
	}
	return nil
}

// lookAheadIn does it for one partition.
func (r *rebuilding) lookAheadIn(ctx context.Context, report *readmodel.RebuildReport, number int32, end int64) error {
	ids := map[string]struct{}{}
	spare := func() error {
		err := r.shadow.Spare(ctx, report, slices.Collect(maps.Keys(ids)))
		clear(ids)
		return err
	}
	for record, err := range r.source.Records(ctx, number, r.build.Next(number), end) {
		if err != nil {
			return err
		}
		account, err := r.accountOf(ctx, &record)
		if err != nil {
			return err
		}
		if account != "" {
			ids[storable(strings.Clone(account))] = struct{}{}
		}
		if len(ids) >= spareAtOnce {
			if err := spare(); err != nil {
				return err
			}
		}
	}
	return spare()
}

// accountOf reads which account a record is about, "" when it does not say.
func (r *rebuilding) accountOf(ctx context.Context, record *projection.Record) (string, error) {
	format, err := r.formats.Resolve(ctx, record.Message)
	if err != nil {
		return "", err
	}
	var d event.Decoded
	format.Decode(record.Message, &d)
	return d.Event.AccountID, nil
}
