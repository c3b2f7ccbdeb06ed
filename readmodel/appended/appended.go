// Package appended projects independent events into a table. Independent events never wait for each
// other. A projection defines how its events are identified and written. This package does the
// rest, such as the position, the decisions, the dead letters and their replay.
package appended

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/pace"
	"projector/internal/session"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
)

// Table stores the events of a projection. It defines how an event is identified and written. One
// goroutine at a time uses it.
type Table interface {
	// Key returns the event's key in the table.
	Key(ev *event.Event) Key
	// Find returns the ids of the stored events with the given keys. Keys without a stored event
	// are left out.
	Find(ctx context.Context, db readmodel.Querier, keys []Key) (map[Key]string, error)
	// Write stores the entries within tx. The entries are sorted by key. If several entries have
	// the same key, only the first one counts. Write sets the field Present of each entry. The
	// caller commits the transaction or repeats it.
	Write(ctx context.Context, tx *readmodel.Tx, entries []Entry) error
}

// Guarded is a Table that remembers its events only for a limited time.
type Guarded interface {
	Table
	// Claimed is called after the partition was claimed. Processing continues at the position pos.
	Claimed(ctx context.Context, db readmodel.Querier, pos projection.Position) error
	// Passed reports whether the entry was certainly processed. Find is not enough for this,
	// because the table may have forgotten the event.
	Passed(entry *Entry) bool
}

// Key identifies an event in a table: account id and version, or the event id.
type Key struct {
	Text   string
	Number int64
}

// Compare defines the order in which rows are locked.
func (k Key) Compare(other Key) int {
	return cmp.Or(strings.Compare(k.Text, other.Text), cmp.Compare(k.Number, other.Number))
}

// Entry is an event that is written to a table.
type Entry struct {
	Event event.Event
	Key   Key
	// Topic, Offset, LeaderEpoch and Partition are those of the record.
	Topic       string
	Offset      int64
	LeaderEpoch int32
	Partition   int32
	// Before is true if the record was processed before. If another event is stored under its key,
	// the record is then not a conflict.
	Before bool
	// Table.Write sets Present to the id of the event that was already stored with the same key. If
	// this event was inserted, Present is empty.
	Present string
}

// Seen is an event with its key.
type Seen struct {
	Key     Key
	EventID string
}

// Config is the configuration of a Projection.
type Config struct {
	Pool      *pgxpool.Pool
	Partition readmodel.Partition
	Table     Table
	Recent    *Recent // may be nil
	Observer  readmodel.Observer
	Breaker   projection.BreakerRule
	Decisions *readmodel.Decisions // decisions of operators; may be nil
}

// Projection is the projection of one partition into a Table.
//
// Most events are written without a query for the events that are already stored. If the write
// finds the same event under the key, the new event is a duplicate. If the write finds another
// event under the key, the new event is a conflict and must be dead-lettered before anything is
// written. The batch is then rolled back and decided again, after a query for the stored events.
type Projection struct {
	cfg      Config
	guard    Guarded // nil if the table forgets nothing
	position projection.Position

	entries []Entry
	byKey   map[Key]string // event ids of the entries; nil until needed
	letters deadLetters
	breaker *projection.Breaker // nil if it is off
	counts  projection.Flushed  // the counts before the write, which may find more duplicates
	bytes   int

	careful int // number of further flushes that look up every event before the write
	refused map[entryRef]string
	last    entryRef // the event of the last decision
}

// entryRef identifies an event by its record and its entry. If the log has lost its end, another
// record may have the same offset, but its leader epoch is higher.
type entryRef struct {
	record projection.RecordRef
	entry  int32
	epoch  int32
}

func entryRefOf(r *projection.Record) entryRef { return entryRef{r.Ref(), r.Entry, r.LeaderEpoch} }

// deadLetters holds the pending dead letters, and the keys on which their decisions are based.
type deadLetters struct {
	list   []projection.DeadLetter
	absent []Key // no event was stored under these keys
}

// New returns the projection of one partition. Call Claim first.
func New(cfg Config) *Projection {
	e := &Projection{cfg: cfg, refused: map[entryRef]string{}}
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
		e.cfg.Recent.Clear() // the database may be another one, or restored to an older state
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
	e.counts, e.bytes = projection.Flushed{}, 0
}

// Pending implements session.Projection.
func (e *Projection) Pending() projection.Pending {
	return projection.Pending{Events: e.counts.Records, Bytes: e.bytes, Open: e.breaker.Open()}
}

// DeadLetters implements session.Projection.
func (e *Projection) DeadLetters() []projection.DeadLetter { return e.letters.list }

// Refuse implements session.Projection.
func (e *Projection) Refuse(reason string) bool {
	_, again := e.refused[e.last]
	e.refused[e.last] = reason
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

// Flush implements session.Projection. Events that were already stored are counted as duplicates.
func (e *Projection) Flush(ctx context.Context, next projection.NextOffset) (projection.Flushed, error) {
	flushed := e.counts
	flushed.DeadLetters = e.letters.list
	pace.Expect(ctx, len(e.entries))
	// The sort is stable, because the first of several events with the same key counts.
	readmodel.SortStable(e.entries, func(a, b *Entry) int { return a.Key.Compare(b.Key) })
	moved := e.position.Moved(next)
	moved.Breaker = e.breaker.State(e.position.Breaker)
	err := readmodel.TransactQueued(ctx, e.cfg.Pool, func(tx *readmodel.Tx) error { return e.write(ctx, tx, moved, &flushed.Outcomes) })
	if err != nil {
		return flushed, fmt.Errorf("write: %w", err)
	}
	e.written(moved)
	return flushed, nil
}

// write moves the position and writes the pending events.
func (e *Projection) write(ctx context.Context, tx *readmodel.Tx, moved projection.Position, outcomes *projection.OutcomeCounts) error {
	tx.Move(readmodel.Move{Partition: e.cfg.Partition, From: e.position, To: moved})
	if len(e.entries) > 0 {
		if err := e.cfg.Table.Write(ctx, tx, e.entries); err != nil {
			return err
		}
	}
	if err := tx.Send(ctx); err != nil {
		return err
	}
	if slices.ContainsFunc(e.entries, func(entry Entry) bool { return entry.Present != "" && entry.conflicts() }) {
		e.careful = staysCareful
		return projection.ErrStale
	}
	e.correct(outcomes) // before the COMMIT, because the reply to it may be lost
	return nil
}

// correct changes the outcomes of entries that were already stored.
func (e *Projection) correct(outcomes *projection.OutcomeCounts) {
	for i := range e.entries {
		if e.entries[i].Present != "" {
			outcomes[appliedAs(&e.entries[i].Event)]--
			outcomes[projection.Duplicate]++
		}
	}
}

// written is called when the pending events are durable.
func (e *Projection) written(moved projection.Position) {
	e.markSeen()
	e.careful = max(0, e.careful-1)
	maps.DeleteFunc(e.refused, func(s entryRef, _ string) bool { return s.record.Offset < moved.Next })
	e.position = moved
	e.reset()
}

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
	e.cfg.Recent.Mark(seen)
}
