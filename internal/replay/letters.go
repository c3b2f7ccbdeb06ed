// Package replay reads dead letters and their current status, and plans and executes replays. A
// Fetch plans and applies missing events from the producer's outbox. The package connects the DLQ
// topic, the outbox and the database. It does not depend on the command line.
package replay

import (
	"cmp"
	"context"
	"iter"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/dlq"
	"projector/errclass"
	"projector/internal/topic"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
)

// DeadLetter is a record of a DLQ topic, with its current status.
type DeadLetter struct {
	DLQTopic string
	Entry    dlq.Entry
	Decoded  event.Decoded // the value, decoded by this program
	Status   dlq.Status
	Replays  int // number of replays so far, to a topic or to the database
	// Corrected means that the dead letter was read from a file, and that its message differs from
	// the topic's or is missing in the topic.
	Corrected bool
	// OtherFrame means that the key or the headers in a file differ from the key or the headers in
	// the topic.
	OtherFrame bool
	// NotInTopic means that the dead letter was read from a file and is missing in the topic.
	NotInTopic bool

	// Value and Original are set for a dead letter from a file. Value is the SHA-256 of the value
	// in the file, in hex. Original is the SHA-256 of the value in the topic. Original is empty if
	// the dead letter is missing in the topic.
	Value, Original string
	// InTopic is the topic's record at the same partition and offset, if Scan.KeepOriginals is set.
	InTopic *Original

	discarded bool // its event was discarded, which the status of a correction does not show
}

// Original is a dead letter as it is stored in the topic.
type Original struct {
	Value   []byte
	Decoded event.Decoded
}

// Altered reports whether the message may differ from the dead letter in the topic. It also
// compares the key and the headers, because in some formats they contain a part of the event.
func (d *DeadLetter) Altered() bool { return d.Value != "" && (d.OtherFrame || d.Value != d.Original) }

// noEvent returns the reason why the dead letter contains no event.
func (d *DeadLetter) noEvent() string {
	if d.Decoded.Fault != nil {
		return d.Decoded.Fault.Error()
	}
	return "there is no event in it"
}

// notInTopic is the text in plans and in the audit trail for a line of an export that is missing in
// the topic.
const notInTopic = "not in the DLQ topic"

// Source is a DLQ topic. topic.Reader implements it.
type Source interface {
	Records(ctx context.Context, scope topic.Scope) iter.Seq2[*kgo.Record, error]
	ReadAt(ctx context.Context, partition int32, offset int64) (*kgo.Record, error)
	Extents(ctx context.Context) (all topic.Extents, exists bool, err error)
}

// Store has the operations of the read model that a replay needs, for one projection.
type Store interface {
	readmodel.Replayer
	// History reads what was done with records of a DLQ topic. See readmodel.LoadHistory.
	History(ctx context.Context, dlqTopic string, places []readmodel.DeadLetterPlace) (map[[2]int64]readmodel.DeadLetterHistory, error)
	// MarkDiscarded marks the records whose event was discarded.
	MarkDiscarded(ctx context.Context, records []projection.DecodedRecord) error
	// Record writes actions that change no account to the audit trail. It writes all actions or
	// none.
	Record(ctx context.Context, actions []readmodel.Action) error
}

// Database is the Store in PostgreSQL.
type Database struct {
	readmodel.Replayer
	Pool      *pgxpool.Pool
	Decisions *readmodel.Decisions // of the projection
}

// History implements Store.
func (d Database) History(
	ctx context.Context, dlqTopic string, places []readmodel.DeadLetterPlace,
) (map[[2]int64]readmodel.DeadLetterHistory, error) {
	return readmodel.LoadHistory(ctx, d.Pool, dlqTopic, places)
}

// MarkDiscarded implements Store.
func (d Database) MarkDiscarded(ctx context.Context, records []projection.DecodedRecord) error {
	err := d.Decisions.Read(ctx)
	d.Decisions.MarkDiscarded(records)
	return err
}

// Record implements Store.
func (d Database) Record(ctx context.Context, actions []readmodel.Action) error {
	return readmodel.RecordActions(ctx, d.Pool, actions)
}

// Action returns the audit trail's row for an action on the dead letter.
func (d *DeadLetter) Action(kind readmodel.ActionKind, actor string) readmodel.Action {
	e := &d.Entry
	return readmodel.Action{
		Kind: kind, Group: readmodel.Storable(e.Group), Projection: readmodel.Storable(e.Projection), AccountID: readmodel.Storable(e.AccountID), Version: e.Received,
		Topic: readmodel.Storable(e.Topic), Partition: e.Partition, Offset: e.Offset,
		DLQTopic: d.DLQTopic, DLQPartition: e.DLQPartition, DLQOffset: e.DLQOffset,
		Class: event.Class(readmodel.Storable(string(e.Class))), Actor: actor,
	}
}

// Discard returns the arguments with which a Replayer discards the dead letter. The parameter action
// is the row for the audit trail.
func (d *DeadLetter) Discard(action readmodel.Action) readmodel.Discard {
	of := d.Subject()
	if !readmodel.CanStore(of.AccountID) { // no account can have this id
		of.AccountID = ""
	}
	return readmodel.Discard{Subject: of, Action: action}
}

// Parked returns the event in the form in which it is parked. If the event cannot be read, or is too
// large for the DLQ topic, it cannot be applied. Its account then waits for another event of the
// version.
func (d *DeadLetter) Parked() *projection.Parked {
	p := &projection.Parked{Record: d.decodedRecord().Record, Decoded: d.Decoded, Class: event.VersionGap}
	p.Record.Topic, p.Record.Replays = readmodel.Storable(d.Entry.Topic), d.Entry.Replays
	of, ev := d.Subject(), &p.Decoded.Event
	ev.AccountID, ev.Version, ev.ID = of.AccountID, of.Version, readmodel.Storable(of.EventID)
	switch {
	case d.Entry.Truncated || d.Decoded.Identity != event.Identified:
		p.Class = event.MalformedPayload
	case d.Decoded.Fault != nil:
		p.Class = d.Decoded.Fault.Class
	}
	return p
}

// replayed returns the audit trail's row for a replay, with the reason for the replay and whether
// the message was altered.
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

// Digest returns the SHA-256, in hex, of the replayed key, value and headers.
func (i *Item) Digest() string {
	return dlq.MessageDigest(i.Entry.Key, i.Entry.Value, i.Entry.Headers)
}

// Subject returns the account, version and id of the event in the dead letter. An unknown id is
// empty.
func (d *DeadLetter) Subject() readmodel.Subject {
	account, version, _ := d.Entry.Subject(&d.Decoded)
	return readmodel.Subject{
		AccountID: account, Version: version, EventID: cmp.Or(d.Decoded.Event.ID, d.Entry.EventID),
		FailedAt: d.Entry.FailedAt, Decoded: &d.Decoded,
	}
}

// Assess sets the status of each dead letter. All dead letters of a chunk must belong to one DLQ
// topic and one projection.
func Assess(ctx context.Context, store Store, chunk []*DeadLetter) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	return errclass.NoAnswer(ctx, []string{"PostgreSQL"}, askWithin, assess(ctx, store, chunk))
}

func assess(ctx context.Context, store Store, chunk []*DeadLetter) error {
	subjects := make([]readmodel.Subject, len(chunk))
	places := make([]readmodel.DeadLetterPlace, len(chunk))
	records := make([]projection.DecodedRecord, len(chunk))
	for i, d := range chunk {
		e := &d.Entry
		records[i] = d.decodedRecord()
		records[i].Record.Topic = readmodel.Storable(e.Topic)
		places[i] = readmodel.DeadLetterPlace{
			Partition: e.DLQPartition, Offset: e.DLQOffset,
			Original: records[i].Record.Ref(),
		}
		subjects[i] = d.Subject()
	}
	statuses, err := store.ReplayStatuses(ctx, subjects)
	if err != nil {
		return err
	}
	history, err := store.History(ctx, chunk[0].DLQTopic, places)
	if err != nil {
		return err
	}
	if err := store.MarkDiscarded(ctx, records); err != nil {
		return err
	}
	for i, d := range chunk {
		done := history[[2]int64{int64(d.Entry.DLQPartition), d.Entry.DLQOffset}]
		d.Replays = d.Entry.Replays + done.Replays
		// An event that was read several times has several dead letters. A person's decision about
		// one of them is a decision about the event. Unreadable events of one record cannot be
		// distinguished.
		d.discarded = records[i].Discarded
		if e := &d.Entry; e.Topic == "" || d.Decoded.Identity != event.Identified {
			d.discarded = done.Discarded || d.discarded && e.Event == 0
		}
		if d.Status = dlq.Discarded; !d.discarded || d.Corrected {
			d.Status = d.Entry.StatusOf(&d.Decoded, statuses[i])
		}
	}
	return nil
}
