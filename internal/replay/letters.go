// Package replay reads dead letters and their status against the read model now, plans what a
// replay of them would do, and does it. A Fetch does the same with missing events of the producer's
// outbox. The package connects the DLQ topic, the outbox and the database, which do not know each
// other; it knows no command line.
package replay

import (
	"cmp"
	"context"
	"iter"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/dlq"
	"projector/internal/topic"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/repair"
)

// DeadLetter is a record of a DLQ topic, with its status against the read model.
type DeadLetter struct {
	DLQTopic string
	Entry    dlq.Entry
	Decoded  event.Decoded // what its value decodes to now
	Status   dlq.Status
	Replays  int // by way of a topic, and to the database
	// Corrected: it was read from a file in which it was changed.
	Corrected bool
	// OtherFrame: its key or its headers are not those the topic has.
	OtherFrame bool
	// NotInTopic: it was read from a file, and the topic does not have it.
	NotInTopic bool

	// Of one that was read from a file, SHA-256 in hex: of its value, and of the value the
	// dead letter has in the topic; empty when the topic does not have it.
	Value, Original string
	// InTopic is what the topic has in the place of a line, if Scan.KeepOriginals.
	InTopic *Original
}

// Original is a dead letter as the topic has it.
type Original struct {
	Value   []byte
	Decoded event.Decoded
}

// Altered reports that what is replayed is not known to be the message of the dead letter: with
// some formats the key or the headers say what the event is.
func (d *DeadLetter) Altered() bool { return d.Value != "" && (d.OtherFrame || d.Value != d.Original) }

// noEvent is why there is no event in it.
func (d *DeadLetter) noEvent() string {
	if d.Decoded.Fault != nil {
		return d.Decoded.Fault.Error()
	}
	return "there is no event in it"
}

// notInTopic is what plan and trail say about a line of an export that the topic does not have.
const notInTopic = "not in the DLQ topic"

// Source is a DLQ topic, as topic.Reader reads it.
type Source interface {
	Records(ctx context.Context, scope topic.Scope) iter.Seq2[*kgo.Record, error]
	ReadAt(ctx context.Context, partition int32, offset int64) (*kgo.Record, error)
	Extents(ctx context.Context) (all topic.Extents, exists bool, err error)
}

// Applier plans and applies events, see readmodel.Replayer.
type Applier interface {
	Plan(ctx context.Context, records []*readmodel.RepairRecord) error
	Apply(ctx context.Context, records []*readmodel.RepairRecord, observe func(readmodel.Step)) error
}

// Store is what a replay needs of the read model, of one projection.
type Store interface {
	readmodel.Replayer
	// History reads what was done about records of a DLQ topic, see readmodel.LoadHistory.
	History(ctx context.Context, dlqTopic string, places []readmodel.DeadLetterPlace) (map[[2]int64]readmodel.DeadLetterHistory, error)
	// Record records actions that change no account, all or none of them.
	Record(ctx context.Context, actions []readmodel.Action) error
}

// Database is the store in PostgreSQL.
func Database(pool *pgxpool.Pool, letters readmodel.Replayer) Store { return database{letters, pool} }

type database struct {
	readmodel.Replayer
	pool *pgxpool.Pool
}

// History implements Store.
func (d database) History(
	ctx context.Context, dlqTopic string, places []readmodel.DeadLetterPlace,
) (map[[2]int64]readmodel.DeadLetterHistory, error) {
	return readmodel.LoadHistory(ctx, d.pool, dlqTopic, places)
}

// Record implements Store.
func (d database) Record(ctx context.Context, actions []readmodel.Action) error {
	return readmodel.RecordActions(ctx, d.pool, actions)
}

// Action is what is recorded of something done about the dead letter.
func (d *DeadLetter) Action(kind readmodel.ActionKind, actor string) readmodel.Action {
	e := &d.Entry
	return readmodel.Action{
		Kind: kind, Group: readmodel.Storable(e.Group), Projection: readmodel.Storable(e.Projection), AccountID: readmodel.Storable(e.AccountID), Version: e.Received,
		Topic: readmodel.Storable(e.Topic), Partition: e.Partition, Offset: e.Offset,
		DLQTopic: d.DLQTopic, DLQPartition: e.DLQPartition, DLQOffset: e.DLQOffset,
		Class: event.Class(readmodel.Storable(string(e.Class))), Actor: actor,
	}
}

// Discard is what is discarded with the dead letter, which the action records.
func (d *DeadLetter) Discard(action readmodel.Action) repair.Discard {
	of := d.subject()
	account := readmodel.Storable(of.AccountID)
	if account != of.AccountID { // no account has that name
		account = ""
	}
	return repair.Discard{
		AccountID: account, Version: of.Version, Class: d.Entry.Class, Action: action,
		Place: projection.RecordRef{Topic: action.Topic, Partition: action.Partition, Offset: action.Offset},
	}
}

// replayed is the action of a replay: with what was altered, and why.
func (i *Item) replayed(r *Replay) readmodel.Action {
	a := i.Action(readmodel.ActionReplay, r.Actor)
	a.Reason = r.Reason
	switch value := i.Entry.Value; {
	case i.Value != "": // it was read from a file
		a.ValueSHA256, a.OriginalSHA256, a.Altered = i.Value, i.Original, i.Altered()
	case value != nil:
		a.ValueSHA256 = readmodel.ValueDigest(value)
		a.OriginalSHA256 = a.ValueSHA256
	}
	if i.NotInTopic {
		return a.Because(notInTopic)
	}
	return a
}

// Digest is SHA-256 of the key, the value and the headers that are replayed, in hex.
func (i *Item) Digest() string {
	return dlq.MessageDigest(i.Entry.Key, i.Entry.Value, i.Entry.Headers)
}

// subject is the event the dead letter is about; its ids are empty when they are not
// known.
func (d *DeadLetter) subject() readmodel.Subject {
	account, version, _ := d.Entry.Subject(&d.Decoded)
	return readmodel.Subject{
		AccountID: account, Version: version, EventID: cmp.Or(d.Decoded.Event.ID, d.Entry.EventID),
		FailedAt: d.Entry.FailedAt, Decoded: &d.Decoded,
	}
}

// Assess gives each its status. All of a chunk are of one DLQ topic and one projection.
func Assess(ctx context.Context, store Store, chunk []*DeadLetter) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	subjects := make([]readmodel.Subject, len(chunk))
	places := make([]readmodel.DeadLetterPlace, len(chunk))
	for i, d := range chunk {
		e := &d.Entry
		places[i] = readmodel.DeadLetterPlace{
			Partition: e.DLQPartition, Offset: e.DLQOffset,
			Original: projection.RecordRef{Topic: readmodel.Storable(e.Topic), Partition: e.Partition, Offset: e.Offset},
		}
		subjects[i] = d.subject()
	}
	statuses, err := store.ReplayStatuses(ctx, subjects)
	if err != nil {
		return err
	}
	history, err := store.History(ctx, chunk[0].DLQTopic, places)
	if err != nil {
		return err
	}
	for i, d := range chunk {
		done := history[[2]int64{int64(d.Entry.DLQPartition), d.Entry.DLQOffset}]
		d.Replays = d.Entry.Replays + done.Replays
		d.Status = dlq.Discarded
		if !done.Discarded || d.Corrected {
			d.Status = d.Entry.StatusOf(&d.Decoded, statuses[i])
		}
	}
	return nil
}
