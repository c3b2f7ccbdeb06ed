package readmodel

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/sql"
)

// Shadow is a second set of the tables of balances, beside the live ones, to be filled
// from the first record and compared.
type Shadow struct {
	*beside
	swaps   int     // the number of the last transaction that was to change live accounts
	swapped Swapped // by all of them
}

// OpenShadow makes a shadow in which accounts have their openings, and nothing else is. What an earlier one has left is dropped. ErrRebuilding
// means that one is in use.
func OpenShadow(ctx context.Context, live *pgxpool.Pool) (*Shadow, error) {
	b, err := openBeside(ctx, live, []string{"account_balance", "parked_event", "park_overflow", "account_opening"}, []string{})
	if err != nil {
		return nil, err
	}
	for _, query := range []string{"shadow_known", "shadow_openings"} {
		if _, err := b.lock.Exec(ctx, sql.Query(query)); err != nil {
			return nil, errors.Join(fmt.Errorf("prepare the rebuild: %w", err), b.Close(ctx))
		}
	}
	return &Shadow{beside: b}, nil
}

// AuditedEvent is an event about which people have done something.
type AuditedEvent struct {
	AccountID string
	Version   int64                // 0: not known
	Class     string               // of the dead letter; empty: not asked for, or none
	Altered   bool                 // what was applied is not what the dead letter has
	Place     projection.RecordRef // without a topic: not known
}

// LoadSkips lists the versions that were passed over on purpose, by account and version. own
// is the name of a projection of one's own; empty: balances.
func LoadSkips(ctx context.Context, pool *pgxpool.Pool, own string) ([]AuditedEvent, error) {
	return audited(ctx, pool, "rebuild_skips", []any{Action{Result: ResultSkipped}.in(own, own != "").Result}, func(e *AuditedEvent) []any {
		return []any{&e.AccountID, &e.Version, &e.Place.Topic, &e.Place.Partition, &e.Place.Offset}
	})
}

// LoadReplays lists the dead letters of a projection that were applied directly and were
// corrected, or more than early. custom: the result of the action names the projection.
func LoadReplays(ctx context.Context, pool *pgxpool.Pool, name string, custom bool) ([]AuditedEvent, error) {
	return audited(ctx, pool, "rebuild_replays", []any{Action{Result: string(EffectApplied)}.in(name, custom).Result, name}, func(e *AuditedEvent) []any {
		return []any{&e.AccountID, &e.Version, &e.Class, &e.Altered, &e.Place.Topic, &e.Place.Partition, &e.Place.Offset}
	})
}

// LoadDiscards lists the places of the events of a projection that were discarded, and not
// replayed since.
func LoadDiscards(ctx context.Context, pool *pgxpool.Pool, name, topic string) ([]projection.RecordRef, error) {
	rows, err := pool.Query(ctx, sql.Query("rebuild_discards"), name, topic)
	if err != nil {
		return nil, fmt.Errorf("load actions: %w", err)
	}
	places, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (projection.RecordRef, error) {
		place := projection.RecordRef{Topic: topic}
		err := row.Scan(&place.Partition, &place.Offset)
		return place, err
	})
	if err != nil {
		return nil, fmt.Errorf("load actions: %w", err)
	}
	return places, nil
}

func audited(ctx context.Context, pool *pgxpool.Pool, query string, args []any, into func(*AuditedEvent) []any) ([]AuditedEvent, error) {
	rows, err := pool.Query(ctx, sql.Query(query), args...)
	if err != nil {
		return nil, fmt.Errorf("load actions: %w", err)
	}
	events, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (AuditedEvent, error) {
		var e AuditedEvent
		err := row.Scan(into(&e)...)
		return e, err
	})
	if err != nil {
		return nil, fmt.Errorf("load actions: %w", err)
	}
	return events, nil
}

// Opened says how far accounts start with an opening.
type Opened struct {
	Some    bool   // there is one that does
	Lacking int64  // accounts that start with their first event
	Example string // one of them
}

// LoadOpened counts the accounts that cannot be rebuilt without the beginning of the topic.
func LoadOpened(ctx context.Context, pool *pgxpool.Pool) (o Opened, err error) {
	err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sql.Query("rebuild_session")); err != nil {
			return err
		}
		return tx.QueryRow(ctx, sql.Query("rebuild_opened")).Scan(&o.Some, &o.Lacking, &o.Example)
	})
	if err != nil {
		return o, fmt.Errorf("count accounts without an opening: %w", err)
	}
	return o, nil
}

// PassOver passes over a version in the shadow if it is the account's next one and,
// unless seen, if its event is parked; then it heals what waits behind it. It answers
// whether the account has passed the version.
func (s *Shadow) PassOver(ctx context.Context, cfg RepairConfig, e *AuditedEvent, seen bool) (passed bool, err error) {
	return s.passOver(ctx, cfg, e, seen)
}

func (b *beside) passOver(ctx context.Context, cfg RepairConfig, e *AuditedEvent, seen bool) (passed bool, err error) {
	cfg.Pool = b.Pool
	r := NewRepair(cfg)
	err = transactOnce(ctx, b.Pool, func(attempt context.Context, tx *Tx) (err error) {
		tx.tables = r.tables()
		passed, err = r.passOverAgain(attempt, tx, e, seen)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("pass over: %w", err)
	}
	return passed, nil
}

func (r *Repair) passOverAgain(ctx context.Context, tx *Tx, e *AuditedEvent, seen bool) (bool, error) {
	known, err := r.known(ctx, tx, e.AccountID)
	if err != nil {
		return false, err
	}
	if known.Account.Version >= e.Version {
		return true, nil
	}
	if known.Account.Version+1 != e.Version || !known.Exists && known.Parked == 0 {
		return false, nil
	}
	s := Skip{AccountID: e.AccountID, Version: e.Version}
	of, err := loadSkippedEvent(ctx, tx, s)
	if err != nil || of.Class == "" && !seen {
		return false, err
	}
	eventID := ""
	if e.Place.Topic != "" {
		eventID = of.EventID
	}
	_, err = r.passOver(ctx, tx, s, eventID, nil)
	return true, err
}

// RebuildKind says in what way a live account, or row, is not what was rebuilt. Its names
// are public surface.
type RebuildKind string

// The kinds of differences. Of the last three the live account is left alone.
const (
	RebuildDifferent RebuildKind = "different" // its balance, version or state
	RebuildMissing   RebuildKind = "missing"   // the live tables lack it
	RebuildUnknown   RebuildKind = "unknown"   // the topic has no event of it
	RebuildHold      RebuildKind = "hold"      // what waits behind its hole
	RebuildAhead     RebuildKind = "ahead"     // it is beyond what the topic gives
	RebuildCorrected RebuildKind = "corrected" // somebody has applied a corrected event
	RebuildMoved     RebuildKind = "moved"     // it was written by others since it was compared
)

// RebuildKinds lists all kinds.
func RebuildKinds() []RebuildKind {
	return []RebuildKind{
		RebuildDifferent, RebuildMissing, RebuildUnknown, RebuildHold, RebuildAhead, RebuildCorrected, RebuildMoved,
	}
}

// changes reports whether the live account is to be replaced or removed.
func (k RebuildKind) changes() bool {
	return k != RebuildAhead && k != RebuildCorrected && k != RebuildMoved
}

// RebuildDifference is one account, or one row, that differs.
type RebuildDifference struct {
	ID   string // the account, or the row's key as text
	Kind RebuildKind
	// Of an account; nil: there is no row.
	Version, Rebuilt *int64
	// Key is the row's key as a JSON object; nil: it is an account.
	Key []byte
}

// RebuildReport is what a comparison has found, in accounts or in rows.
type RebuildReport struct {
	Checked, Matched int64
	Kinds            map[RebuildKind]int64 // of those that do not match
	Differences      []RebuildDifference   // the first of them
	// Markers are missing in the inbox: events that are counted and would be counted again.
	Markers int64
}

// Different is how many are not right, of those that are not left alone.
func (r *RebuildReport) Different() int64 { return r.count(true) }

// LeftAlone is how many differ and are not touched.
func (r *RebuildReport) LeftAlone() int64 { return r.count(false) }

func (r *RebuildReport) count(changes bool) (n int64) {
	for kind, of := range r.Kinds {
		if kind.changes() == changes {
			n += of
		}
	}
	return n
}

// become takes accounts or rows for another kind than they were taken for.
func (r *RebuildReport) become(kind RebuildKind, was map[string]RebuildKind) {
	for _, k := range was {
		r.Kinds[k]--
		r.Kinds[kind]++
	}
	for i := range r.Differences {
		if d := &r.Differences[i]; was[d.ID] != "" {
			d.Kind = kind
		}
	}
}
