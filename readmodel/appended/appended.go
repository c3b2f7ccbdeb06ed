// Package appended projects independent events into a table: none has to
// wait for another. A projection says how its events differ and how they are written; position,
// fence, decisions, dead letters and their replay are here.
package appended

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/pace"
	"projector/internal/session"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
)

// Table stores the events of a projection in which no event waits for another. It says how an
// event is identified and how it is written; Projection does the rest. It is used by one goroutine at a time.
type Table interface {
	// Key identifies the event in the table.
	Key(ev *event.Event) Key
	// Find returns the ids of the events that have the given keys. Keys at which
	// none does are left out.
	Find(ctx context.Context, db readmodel.Querier, keys []Key) (map[Key]string, error)
	// Write takes the entries in, within tx and in their order, which is that of
	// their keys; of those with one key the first counts. It sets each entry's
	// Present. The transaction is committed by the caller, or repeated.
	Write(ctx context.Context, tx *readmodel.Tx, entries []Entry) error
}

// Guarded is a Table that forgets with time which events it has.
type Guarded interface {
	Table
	// Claimed is called when the partition was claimed, with where it continues.
	Claimed(ctx context.Context, db readmodel.Querier, pos projection.Position) error
	// Passed reports whether the entry was processed for certain, although the table may
	// have forgotten it.
	Passed(entry *Entry) bool
}

// Key identifies an event in a table: an account and a version, or an event id.
type Key struct {
	Text   string
	Number int64
}

// Compare is the order in which rows are locked.
func (k Key) Compare(other Key) int {
	return cmp.Or(strings.Compare(k.Text, other.Text), cmp.Compare(k.Number, other.Number))
}

// Entry is an event on its way into a table.
type Entry struct {
	Event event.Event
	Key   Key
	// Topic, Offset, LeaderEpoch and Partition of the record.
	Topic       string
	Offset      int64
	LeaderEpoch int32
	Partition   int32
	// Before: the record was processed before, and another event in its place is history
	// and no conflict.
	Before bool
	// Present is set by Write: the id of the event that has the key already; empty when
	// this one was inserted.
	Present string
}

// Recent remembers events that were processed lately. It may forget, and it may fail:
// it saves work and decides nothing. It must never claim to have seen what was not
// marked since it was cleared.
type Recent interface {
	Check(Seen) (bool, error)
	Mark([]Seen) error
	Clear()
}

// Seen is an event at its key.
type Seen struct {
	Key     Key
	EventID string
}

// Config is what a Projection needs.
type Config struct {
	Pool      *pgxpool.Pool
	Partition readmodel.Partition
	Table     Table
	Recent    Recent // nil: none
	Observer  readmodel.Observer
	Breaker   projection.BreakerRule
	Decisions *readmodel.Decisions // of people; nil: none
}

// Projection is the projection of one partition into a Table.
//
// Events are written first and decided about by what PostgreSQL says: a key that is taken
// by the same event makes a duplicate. Only when one is taken by another event, a
// conflict, which has to be dead-lettered before anything is written, is the batch
// given up and decided about again, and then with a look at the table first.
type Projection struct {
	cfg      Config
	guard    Guarded // nil: the table forgets nothing
	position projection.Position

	entries []Entry
	byKey   map[Key]string // event ids of the entries; nil until it is needed
	letters deadLetters
	breaker *projection.Breaker // nil: off
	taken   projection.Flushed  // as far as it is known before the write
	bytes   int

	careful int // flushes for which every event is looked up first
	refused map[sole]string
	sole    sole // decided about last
}

// sole names an event by its record and its entry.
type sole struct {
	record projection.RecordRef
	entry  int32
}

func soleOf(r *projection.Record) sole { return sole{r.Ref(), r.Entry} }

// deadLetters are those pending, and what the decisions about them rest on.
type deadLetters struct {
	list   []projection.DeadLetter
	absent []Key // nothing stood there
}

// New prepares the projection of one partition; Claim comes first.
func New(cfg Config) *Projection {
	e := &Projection{cfg: cfg, refused: map[sole]string{}}
	e.guard, _ = cfg.Table.(Guarded)
	return e
}

var _ session.Projection = (*Projection)(nil)

// Claim implements session.Projection.
func (e *Projection) Claim(ctx context.Context, c projection.Claim) (projection.Position, error) {
	pos, err := readmodel.ClaimPosition(ctx, e.cfg.Pool, e.cfg.Partition, c)
	if err != nil {
		return pos, err
	}
	if err := e.cfg.Decisions.Read(ctx); err != nil {
		return pos, err
	}
	e.position = pos
	e.reset()
	e.breaker = projection.NewBreaker(e.cfg.Breaker, e.cfg.Partition.Number, &pos)
	if e.cfg.Recent != nil {
		e.cfg.Recent.Clear() // the database may be another, or an older one
	}
	if e.guard != nil {
		err = e.guard.Claimed(ctx, e.cfg.Pool, pos)
	}
	return pos, err
}

func (e *Projection) reset() {
	clear(e.entries)
	e.entries, e.byKey = e.entries[:0], nil
	e.letters = deadLetters{}
	e.taken, e.bytes = projection.Flushed{}, 0
}

// Pending implements session.Projection.
func (e *Projection) Pending() projection.Pending {
	return projection.Pending{Events: e.taken.Records, Bytes: e.bytes, Open: e.breaker.Open()}
}

// DeadLetters implements session.Projection.
func (e *Projection) DeadLetters() []projection.DeadLetter { return e.letters.list }

// Refuse implements session.Projection.
func (e *Projection) Refuse(reason string) bool {
	_, again := e.refused[e.sole]
	e.refused[e.sole] = reason
	return !again
}

// Verify implements session.Projection.
func (e *Projection) Verify(ctx context.Context) error {
	if err := readmodel.VerifyPosition(ctx, e.cfg.Pool, e.cfg.Partition, e.position); err != nil {
		return err
	}
	if len(e.letters.absent) == 0 {
		return nil
	}
	found, err := e.cfg.Table.Find(ctx, e.cfg.Pool, e.letters.absent)
	if err == nil && len(found) > 0 {
		err = projection.ErrStale
	}
	return err
}

// Flush implements session.Projection. It corrects the outcomes by what was there already.
func (e *Projection) Flush(ctx context.Context, next projection.NextOffset) (projection.Flushed, error) {
	flushed := e.taken
	flushed.DeadLetters = e.letters.list
	pace.Expect(ctx, len(e.entries))
	conn, err := e.cfg.Pool.Acquire(ctx)
	if err != nil {
		return flushed, fmt.Errorf("write: %w", err)
	}
	defer conn.Release()
	// Of two events with one key the first counts.
	readmodel.SortStable(e.entries, func(a, b *Entry) int { return a.Key.Compare(b.Key) })
	moved := e.position.Moved(next)
	moved.Breaker = e.breaker.State(e.position.Breaker)
	if err := e.writeTx(ctx, conn.Conn(), moved, &flushed.Outcomes); err != nil {
		return flushed, fmt.Errorf("write: %w", err)
	}
	e.written(moved)
	return flushed, nil
}

// writeTx writes all that is pending.
func (e *Projection) writeTx(ctx context.Context, conn *pgx.Conn, moved projection.Position, outcomes *projection.OutcomeCounts) error {
	tx := readmodel.Begin(conn)
	tx.Move(readmodel.Move{Partition: e.cfg.Partition, From: e.position, To: moved})
	var err error
	if len(e.entries) > 0 {
		err = e.cfg.Table.Write(ctx, tx, e.entries)
	}
	if err == nil {
		err = tx.Send(ctx)
	}
	if err == nil && slices.ContainsFunc(e.entries, func(entry Entry) bool { return entry.Present != "" && entry.conflicts() }) {
		e.careful, err = staysCareful, projection.ErrStale
	}
	if err == nil {
		e.correct(outcomes) // before the COMMIT, whose answer may be lost
	}
	return tx.End(ctx, err)
}

// correct counts what turned out to be there already.
func (e *Projection) correct(outcomes *projection.OutcomeCounts) {
	for i := range e.entries {
		if e.entries[i].Present != "" {
			outcomes[appliedAs(&e.entries[i].Event)]--
			outcomes[projection.Duplicate]++
		}
	}
}

// written takes note that everything pending is durable.
func (e *Projection) written(moved projection.Position) {
	e.markSeen()
	e.careful = max(0, e.careful-1)
	maps.DeleteFunc(e.refused, func(s sole, _ string) bool { return s.record.Offset < moved.Next })
	e.position = moved
	e.reset()
}

// markSeen adds what is durable now to the recent-event cache.
func (e *Projection) markSeen() {
	if e.cfg.Recent == nil || len(e.entries) == 0 {
		return
	}
	seen := make([]Seen, 0, len(e.entries))
	for i := range e.entries {
		if entry := &e.entries[i]; entry.Present == "" || entry.Present == entry.Event.ID {
			seen = append(seen, Seen{entry.Key, entry.Event.ID})
		}
	}
	if e.cfg.Recent.Mark(seen) != nil {
		e.cfg.Observer.DedupError(1)
	}
}
