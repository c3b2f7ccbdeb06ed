package readmodel

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/errclass"
	"projector/projection"
	"projector/projection/event"
	"projector/sql"
)

// Decisions holds what operators have decided about single events of a projection. It has the
// records that they discarded and the versions that they skipped. The decisions are read from the
// audit trail. A nil pointer holds no decisions. Decisions is safe for concurrent use.
type Decisions struct {
	pool       *pgxpool.Pool
	projection string
	custom     string // the projection's name if it is a custom projection

	mu        sync.Mutex
	through   int64                                     // the last row of the trail that was read
	at        time.Time                                 // when that row was written
	asked     time.Time                                 // when the last query started
	discarded map[projection.RecordRef][]discardedEvent // the discarded events of each record
	versions  map[string][]int64                        // the versions of these events by account, in no order
	skipped   map[accountVersion]projection.RecordRef   // the skipped events; the record is empty if unknown
}

// accountVersion names an event by its account and version. The version is noVersion if it could not
// be read.
type accountVersion struct {
	accountID string
	version   int64
}

// noVersion is the version that decisions.sql returns if the version is not known. The version 0 is
// that of an event if accounts begin at 0.
const noVersion = -1

// discardedEvent is an event that was discarded. The account is empty if it could not be read.
type discardedEvent struct {
	accountVersion
	at int64 // when it was discarded, in ms since the Unix epoch
}

// NewDecisions returns the decisions about events of a projection. Call Read before the other
// methods.
func NewDecisions(pool *pgxpool.Pool, of Definition) *Decisions {
	custom := ""
	if of.Custom() {
		custom = of.Name()
	}
	return &Decisions{
		pool: pool, projection: of.Name(), custom: custom,
		discarded: map[projection.RecordRef][]discardedEvent{}, versions: map[string][]int64{},
		skipped: map[accountVersion]projection.RecordRef{},
	}
}

// Read reads the decisions made since the last call.
func (d *Decisions) Read(ctx context.Context) error {
	if d == nil {
		return nil
	}
	return d.ReadIn(ctx, d.pool)
}

// ReadIn does the same as Read, on the given connection.
func (d *Decisions) ReadIn(ctx context.Context, db Querier) error {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asked.After(now) { // another partition's claim has read the decisions while this call waited
		return nil
	}
	now = time.Now()
	suffix := ""
	if d.custom != "" {
		suffix = " in " + d.custom
	}
	var (
		chain        int64
		kind, result string
		of           accountVersion
		place        projection.RecordRef
		at           time.Time
	)
	args := []any{d.through, d.projection, suffix, d.at}
	into := []any{&chain, &kind, &result, &of.accountID, &of.version, &place.Topic, &place.Partition, &place.Offset, &at}
	err := Each(ctx, db, "read what people have decided", sql.Query("decisions"), args, into, func() error {
		if chain == 0 { // all decisions follow
			clear(d.discarded)
			clear(d.versions)
			clear(d.skipped)
		} else {
			d.add(ActionKind(kind), result, of, place, at)
		}
		d.through, d.at = chain, at
		return nil
	})
	if err == nil {
		d.asked = now
	}
	return err
}

func (d *Decisions) add(kind ActionKind, result string, of accountVersion, place projection.RecordRef, at time.Time) {
	result, _, _ = strings.Cut(result, " in ")
	switch {
	case kind == ActionDiscard && result == ResultDiscarded && place.Topic != "":
		d.discarded[place] = append(d.discarded[place], discardedEvent{of, at.UnixMilli()})
		d.versions[of.accountID] = append(d.versions[of.accountID], of.version)
	case kind == ActionReplay && result == string(EffectApplied): // a replay revokes the discard
		d.revoke(place, of)
	case kind == ActionSkip && result == ResultSkipped:
		d.skipped[of] = place
	case kind == ActionUnskip && result == ResultUnskipped:
		delete(d.skipped, of)
	}
}

// revoke removes the discards of an event and of unreadable events of its record.
func (d *Decisions) revoke(place projection.RecordRef, of accountVersion) {
	left := slices.DeleteFunc(d.discarded[place], func(e discardedEvent) bool {
		if e.accountVersion != of && e.accountID != "" {
			return false
		}
		if i := slices.Index(d.versions[e.accountID], e.version); i >= 0 {
			d.versions[e.accountID] = slices.Delete(d.versions[e.accountID], i, i+1)
		}
		return true
	})
	if d.discarded[place] = left; len(left) == 0 {
		delete(d.discarded, place)
	}
}

// MarkDiscarded marks the records that were discarded.
func (d *Decisions) MarkDiscarded(records []projection.DecodedRecord) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range records {
		r := &records[i]
		r.Discarded = d.isDiscarded(r)
	}
}

// Discarded reports whether an event to park was discarded.
func (d *Decisions) Discarded(p *projection.Parked) bool {
	one := []projection.DecodedRecord{{Record: p.Record, Decoded: p.Decoded}}
	d.MarkDiscarded(one)
	return one[0].Discarded
}

func (d *Decisions) isDiscarded(r *projection.DecodedRecord) bool {
	return len(d.discarded) > 0 && slices.ContainsFunc(d.discarded[r.Record.Ref()], func(e discardedEvent) bool { return e.isOf(r) })
}

// Check reads the decisions in a transaction that applies records, and returns an error if one of
// their events was discarded after the plan. The caller must hold a lock that a discard waits for.
func (d *Decisions) Check(ctx context.Context, tx *Tx, records []*RepairRecord) error {
	if d == nil {
		return nil
	}
	if err := d.ReadIn(ctx, tx); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range records {
		ev := &r.Decoded.Event
		discarded := d.isDiscarded(&r.DecodedRecord)
		if r.Record.Partition == projection.NoPartition { // it was fetched from the outbox
			discarded = slices.Contains(d.versions[ev.AccountID], ev.Version)
		}
		if discarded && !r.Revokes {
			return errclass.Text(fmt.Sprintf("the event of account %q version %d was discarded meanwhile, so it is not applied", ev.AccountID, ev.Version))
		}
	}
	return nil
}

// isOf reports whether the event that was discarded at this offset is the event of the record. Another
// event may have the offset now, because the topic was created again or has lost its end. If the
// accounts cannot be compared, a record that is later than the discard is another one.
func (d discardedEvent) isOf(r *projection.DecodedRecord) bool {
	ev, identified := &r.Decoded.Event, r.Decoded.Identity == event.Identified
	of := accountVersion{ev.AccountID, ev.Version}
	if !identified && ev.Version == 0 {
		of.version = noVersion
	}
	switch {
	case r.Record.Entry > 0 && d.accountVersion != of:
		return false
	case identified && d.accountID != "":
		return d.accountID == ev.AccountID && (d.version == noVersion || d.version == ev.Version)
	default:
		return r.Record.Timestamp <= d.at
	}
}

// FirstDiscarded returns the lowest version of an account, from a version on, whose event was
// discarded. It returns false if there is none.
func (d *Decisions) FirstDiscarded(accountID string, from int64) (version int64, is bool) {
	if d == nil {
		return 0, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, v := range d.versions[accountID] {
		if v >= from && (!is || v < version) {
			version, is = v, true
		}
	}
	return version, is
}

// AllSkipped returns the skipped events, ordered by account and version.
func (d *Decisions) AllSkipped() []projection.SkippedEvent {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]projection.SkippedEvent, 0, len(d.skipped))
	for e, place := range d.skipped {
		all = append(all, projection.SkippedEvent{AccountID: e.accountID, Version: e.version, Record: place})
	}
	slices.SortFunc(all, func(a, b projection.SkippedEvent) int {
		return cmp.Or(strings.Compare(a.AccountID, b.AccountID), cmp.Compare(a.Version, b.Version))
	})
	return all
}

// Skipped returns copies of the events whose versions were skipped.
func (d *Decisions) Skipped(events []projection.SkippedEvent) (skipped []projection.SkippedEvent) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.skipped) == 0 {
		return nil
	}
	for _, e := range events {
		if _, was := d.skipped[accountVersion{e.AccountID, e.Version}]; was {
			e.AccountID = strings.Clone(e.AccountID)
			skipped = append(skipped, e)
		}
	}
	return skipped
}
