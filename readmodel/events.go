package readmodel

import (
	"cmp"
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/projection/event"
)

// EventTable is where a projection keeps events each of which stands for itself:
// none has to wait for another. It says how an event is told apart and how it is
// written; Events does all the rest. It is used by one goroutine at a time.
type EventTable interface {
	// Key tells the event apart in the table.
	Key(ev *event.Event) Key
	// Find answers which events, by their ids, stand at the given keys. Keys at which
	// none does are left out.
	Find(ctx context.Context, db Querier, keys []Key) (map[Key]string, error)
	// Write takes the entries in, within tx and in their order, which is that of
	// their keys; of those with one key the first counts. It sets each entry's
	// Present. The transaction is committed by the caller, or repeated.
	Write(ctx context.Context, tx *Tx, entries []Entry) error
}

// Guarded is an EventTable that forgets with time which events it has.
type Guarded interface {
	EventTable
	// Claimed is told when the partition was taken over, and where it goes on.
	Claimed(ctx context.Context, db Querier, pos projection.Position) error
	// Passed reports whether the entry was taken in for certain, although the table may
	// have forgotten it.
	Passed(entry *Entry) bool
}

// Querier is what reading needs: a pool, a connection or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Key tells events apart in a table: an account and a version, or an event id.
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
	// Offset and LeaderEpoch of the record.
	Offset      int64
	LeaderEpoch int32
	// Before: the record was processed before, and another event in its place is history
	// and no conflict.
	Before bool
	// Present is set by Write: the id of the event that stands at the key already;
	// empty when this one was taken in.
	Present string
}

// Recent remembers events that were taken in lately. It may forget, and it may fail:
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

// EventsConfig is what Events needs.
type EventsConfig struct {
	Pool      *pgxpool.Pool
	Partition Partition
	Table     EventTable
	Recent    Recent // nil: none
	Observer  Observer
}

// Events is the projection of one partition into an EventTable.
//
// Events are written first and judged by what PostgreSQL says: a key that is taken
// by the same event makes a duplicate. Only when one is taken by another event, a
// conflict, which has to be dead-lettered before anything is written, is the batch
// given up and judged again, and then with a look at the table first.
type Events struct {
	cfg      EventsConfig
	guard    Guarded // nil: the table forgets nothing
	position projection.Position

	entries []Entry
	byKey   map[Key]string // event ids of the entries; nil while nobody has asked
	letters letters
	changes projection.Changes

	careful int // flushes for which every event is looked up first
	refused map[projection.Place]string
	sole    projection.Place
}

// letters are the dead letters pending and what their verdicts rest on.
type letters struct {
	list   []projection.DeadLetter
	absent []Key // nothing stood there
}

// NewEvents prepares the projection of one partition; Claim comes first.
func NewEvents(cfg EventsConfig) *Events {
	e := &Events{cfg: cfg, refused: map[projection.Place]string{}}
	e.guard, _ = cfg.Table.(Guarded)
	return e
}

var _ Projection = (*Events)(nil)

// Claim takes the partition over and forgets all that was pending.
func (e *Events) Claim(ctx context.Context, c projection.Claim) (projection.Position, error) {
	pos, err := ClaimPosition(ctx, e.cfg.Pool, e.cfg.Partition, c)
	if err != nil {
		return pos, err
	}
	e.position = pos
	e.reset()
	if e.cfg.Recent != nil {
		e.cfg.Recent.Clear() // the database may be another, or an older one
	}
	if e.guard != nil {
		err = e.guard.Claimed(ctx, e.cfg.Pool, pos)
	}
	return pos, err
}

func (e *Events) reset() {
	clear(e.entries)
	e.entries, e.byKey = e.entries[:0], nil
	e.letters = letters{}
	e.changes = projection.Changes{}
}

// Heal implements Projection: nothing ever waits.
func (*Events) Heal(context.Context, int) (bool, error) { return false, nil }

// Pending tells how much waits to be flushed.
func (e *Events) Pending() projection.Pending {
	return projection.Pending{Events: e.changes.Records, Bytes: e.changes.Bytes}
}

// Changes is what a flush publishes. What it writes stays here.
func (e *Events) Changes() *projection.Changes {
	e.changes.Letters = e.letters.list
	return &e.changes
}

// Reject makes the only pending event be judged as refused by the database; false
// when it was judged so already.
func (e *Events) Reject(reason string) bool {
	_, again := e.refused[e.sole]
	e.refused[e.sole] = reason
	return !again
}

// Verify answers ErrFenced or ErrStale unless the dead letters' verdicts still hold.
func (e *Events) Verify(ctx context.Context, _ *projection.Changes) error {
	if err := verifyPosition(ctx, e.cfg.Pool, e.cfg.Partition, e.position); err != nil {
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

// ErrSuppressed says that a row was written and is not there.
var ErrSuppressed error = suppressed{}

type suppressed struct{}

// Error implements error.
func (suppressed) Error() string {
	return "a row that was written is not there: is a trigger keeping rows from being written?"
}

// SafeText vouches for the text: it holds no data.
func (s suppressed) SafeText() string { return s.Error() }
