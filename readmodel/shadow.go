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

// shadowSchema is where a rebuild has its tables.
const shadowSchema = "projector_rebuild"

// ErrRebuilding says that another rebuild is under way.
var ErrRebuilding = errors.New("another rebuild of this database is under way")

// Shadow is a second set of the tables of balances, beside the live ones, to be filled
// from the first record and compared.
type Shadow struct {
	live *pgxpool.Pool
	lock *pgxpool.Conn
	// Pool sees the shadow's tables by the names of the live ones: what is opened on it
	// writes there.
	Pool *pgxpool.Pool

	swaps   int     // the number of the last transaction that was to change live accounts
	swapped Swapped // by all of them
}

// OpenShadow makes an empty shadow; it needs the right to create a schema. What an
// earlier one has left is dropped. ErrRebuilding means that one is in use.
func OpenShadow(ctx context.Context, live *pgxpool.Pool) (*Shadow, error) {
	lock, err := live.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("prepare the rebuild: %w", err)
	}
	s := &Shadow{live: live, lock: lock}
	var free bool
	if err := lock.QueryRow(ctx, sql.Query("shadow_lock")).Scan(&free); err != nil {
		lock.Release()
		return nil, fmt.Errorf("prepare the rebuild: %w", err)
	}
	if !free {
		lock.Release()
		return nil, ErrRebuilding
	}
	if _, err = lock.Exec(ctx, sql.Query("shadow_create")); err == nil {
		s.Pool, err = shadowPool(ctx, live)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare the rebuild: %w", err), s.Close(ctx))
	}
	return s, nil
}

func shadowPool(ctx context.Context, live *pgxpool.Pool) (*pgxpool.Pool, error) {
	cfg := live.Config()
	cfg.ConnConfig.RuntimeParams["search_path"] = shadowSchema
	cfg.MinConns, cfg.MinIdleConns = 0, 0
	return pgxpool.NewWithConfig(ctx, cfg)
}

// Close drops the shadow.
func (s *Shadow) Close(ctx context.Context) error {
	if s.Pool != nil {
		s.Pool.Close()
	}
	_, err := s.lock.Exec(ctx, sql.Query("shadow_drop"))
	if _, unlockErr := s.lock.Exec(ctx, sql.Query("shadow_unlock")); unlockErr != nil {
		_ = s.lock.Conn().Close(ctx) // the lock goes with the session
	}
	s.lock.Release()
	if err != nil {
		return fmt.Errorf("drop the tables of the rebuild: %w", err)
	}
	return nil
}

// TopicPosition is up to where the live balances have taken in a partition.
type TopicPosition struct {
	Partition int32
	Next      int64
	TopicIDs  [2]string // the lowest and the highest of the consumer groups'
}

// LoadTopicPositions reads up to where the live balances have taken in a topic,
// whichever consumer group has.
func LoadTopicPositions(ctx context.Context, db querier, topic string) ([]TopicPosition, error) {
	rows, err := db.Query(ctx, sql.Query("rebuild_positions"), topic)
	if err != nil {
		return nil, fmt.Errorf("load positions: %w", err)
	}
	positions, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p TopicPosition, err error) {
		err = row.Scan(&p.Partition, &p.Next, &p.TopicIDs[0], &p.TopicIDs[1])
		return p, err
	})
	if err != nil {
		return nil, fmt.Errorf("load positions: %w", err)
	}
	return positions, nil
}

// LoadOtherTopics names topics other than this one that balances have come from.
func LoadOtherTopics(ctx context.Context, pool *pgxpool.Pool, topic string) ([]string, error) {
	return texts(ctx, pool, "rebuild_sources", topic)
}

// LoadDependents names tables whose rows would change with a balance that is replaced.
func LoadDependents(ctx context.Context, pool *pgxpool.Pool) ([]string, error) {
	return texts(ctx, pool, "rebuild_dependents")
}

// ShadowRoom is what a shadow takes.
type ShadowRoom struct {
	Bytes   int64 // as much as the live tables, about
	Allowed bool  // its schema may be made
}

// LoadShadowRoom looks whether there can be a shadow. How much room a server has left, it
// does not tell.
func LoadShadowRoom(ctx context.Context, pool *pgxpool.Pool) (room ShadowRoom, err error) {
	if err := pool.QueryRow(ctx, sql.Query("shadow_room")).Scan(&room.Bytes, &room.Allowed); err != nil {
		return room, fmt.Errorf("prepare the rebuild: %w", err)
	}
	return room, nil
}

func texts(ctx context.Context, pool *pgxpool.Pool, query string, args ...any) ([]string, error) {
	rows, err := pool.Query(ctx, sql.Query(query), args...)
	if err != nil {
		return nil, fmt.Errorf("prepare the rebuild: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("prepare the rebuild: %w", err)
	}
	return list, nil
}

// AuditedEvent is an event about which people have done something.
type AuditedEvent struct {
	AccountID string
	Version   int64                // 0: not asked for
	Class     string               // of the dead letter; empty: not asked for, or none
	Place     projection.RecordRef // without a topic: not known
}

// LoadSkips lists the versions that were passed over on purpose, by account and version.
func LoadSkips(ctx context.Context, pool *pgxpool.Pool) ([]AuditedEvent, error) {
	return audited(ctx, pool, "rebuild_skips", func(e *AuditedEvent) []any {
		return []any{&e.AccountID, &e.Version, &e.Place.Topic, &e.Place.Partition, &e.Place.Offset}
	})
}

// LoadReplays lists the dead letters that were applied directly and were more than early.
func LoadReplays(ctx context.Context, pool *pgxpool.Pool) ([]AuditedEvent, error) {
	return audited(ctx, pool, "rebuild_replays", func(e *AuditedEvent) []any {
		return []any{&e.AccountID, &e.Class, &e.Place.Topic, &e.Place.Partition, &e.Place.Offset}
	})
}

func audited(ctx context.Context, pool *pgxpool.Pool, query string, into func(*AuditedEvent) []any) ([]AuditedEvent, error) {
	rows, err := pool.Query(ctx, sql.Query(query))
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

// PassOver passes over a version in the shadow if it is the account's next one and,
// unless seen, if its event is parked; then it heals what waits behind it. It answers
// whether the account has passed the version.
func (s *Shadow) PassOver(ctx context.Context, cfg RepairConfig, e *AuditedEvent, seen bool) (passed bool, err error) {
	cfg.Pool = s.Pool
	r := NewRepair(cfg)
	err = transactOnce(ctx, s.Pool, func(attempt context.Context, tx *Tx) (err error) {
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
	h, err := loadHole(ctx, tx, s)
	if err != nil || h.class == "" && !seen {
		return false, err
	}
	eventID := ""
	if e.Place.Topic != "" {
		eventID = h.eventID
	}
	_, err = r.passOver(ctx, tx, s, eventID, nil)
	return true, err
}

// RebuildKind says in what way a live account is not what was rebuilt. Its names are
// public surface.
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

// RebuildDifference is one account that differs. A nil version: there is no row.
type RebuildDifference struct {
	AccountID        string
	Kind             RebuildKind
	Version, Rebuilt *int64
}

// RebuildReport is what a comparison has found.
type RebuildReport struct {
	Checked, Matched int64
	Kinds            map[RebuildKind]int64 // of those that do not match
	Differences      []RebuildDifference   // the first of them
}

// Different is how many accounts are not right, of those that are not left alone.
func (r *RebuildReport) Different() int64 { return r.count(true) }

// LeftAlone is how many accounts differ and are not touched.
func (r *RebuildReport) LeftAlone() int64 { return r.count(false) }

func (r *RebuildReport) count(changes bool) (n int64) {
	for kind, of := range r.Kinds {
		if kind.changes() == changes {
			n += of
		}
	}
	return n
}

// become takes accounts for another kind than they were taken for.
func (r *RebuildReport) become(kind RebuildKind, was map[string]RebuildKind) {
	for _, k := range was {
		r.Kinds[k]--
		r.Kinds[kind]++
	}
	for i := range r.Differences {
		if d := &r.Differences[i]; was[d.AccountID] != "" {
			d.Kind = kind
		}
	}
}
