package readmodel

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/projection/event"
	"projector/sql"
)

// ActionKind names an action of the audit trail. The action was carried out by an operator or by an
// instance of the program. The names are part of the public interface.
type ActionKind string

// These are the actions in the audit trail. A new action also needs a line in ActionKinds, and a
// migration that adds it to the constraint dlq_action_action_check.
const (
	ActionReplay  ActionKind = "replay"
	ActionDiscard ActionKind = "discard"
	ActionSkip    ActionKind = "skip"
	ActionFetch   ActionKind = "fetch" // a missing event, read from the producer's outbox
	ActionOpen    ActionKind = "open"
	ActionUnskip  ActionKind = "unskip"
	ActionRebuild ActionKind = "rebuild"
	ActionPrune   ActionKind = "prune" // markers of the inbox, by `projector inbox prune`

	ActionPause       ActionKind = "pause"
	ActionResume      ActionKind = "resume"
	ActionPositionSet ActionKind = "position_set" // the result has the old position and the new one
	ActionFourEyes    ActionKind = "four_eyes"    // somebody turned the policy on or off
)

// ActionKinds returns all actions in the audit trail, in the order of the help.
func ActionKinds() []ActionKind {
	return []ActionKind{
		ActionReplay, ActionDiscard, ActionSkip, ActionUnskip, ActionFetch, ActionOpen, ActionRebuild,
		ActionPositionSet, ActionPause, ActionResume, ActionPrune, ActionFourEyes,
	}
}

// These are results of actions. The result of a replay is an Effect. The names are part of the
// public interface.
const (
	ResultDiscarded = "discarded"
	ResultSkipped   = "skipped"
	ResultRefused   = "refused"
	ResultPublished = "published"
	ResultOpened    = "opened"
	ResultUnskipped = "unskipped"
)

// Action is one row of dlq_action: what was done, about which record, by whom, why, and with what
// result. An empty or nil field is unknown or does not apply to the action. The names in JSON are
// the columns of dlq_action.
type Action struct {
	Kind       ActionKind `json:"action"`
	Group      string     `json:"consumer_group"`
	Projection string     `json:"projection"`
	AccountID  string     `json:"account_id"`
	Version    *int64     `json:"version"` // of the event

	// Topic, Partition and Offset are the position of the original record in its source topic. The
	// position is unknown if Topic is empty.
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`

	// DLQTopic, DLQPartition and DLQOffset are the position of the dead letter. There is no dead
	// letter if DLQTopic is empty.
	DLQTopic     string `json:"dlq_topic"`
	DLQPartition int32  `json:"dlq_partition"`
	DLQOffset    int64  `json:"dlq_offset"`

	Class  event.Class `json:"class"`
	Actor  string      `json:"actor"`
	Reason string      `json:"reason"`
	Result string      `json:"result"`

	// ValueSHA256 is the digest of the replayed value. OriginalSHA256 is the digest of the dead
	// letter's value. For openings, these fields are the digests of the opened accounts and of the
	// ledger file.
	Altered        bool   `json:"altered"`
	ValueSHA256    string `json:"value_sha256"`
	OriginalSHA256 string `json:"original_sha256"`

	// For a skip, PreviousEventID is the account's last event before the skip.
	PreviousEventID string `json:"previous_event_id"`
}

// ValueDigest returns the SHA-256 of an event's value, in hex.
func ValueDigest(value []byte) string {
	sum := sha256.Sum256(value)
	return hex.EncodeToString(sum[:])
}

// With returns the action with the effect of a replay as its result.
func (a Action) With(v projection.Decision) Action {
	a.Result = string(EffectOf(v))
	if v.Outcome == projection.DeadLettered {
		a.Class = v.Class
		return a.Because(v.Message)
	}
	return a
}

// In returns the action with its projection. For one release, the result also names a custom
// projection. The previous release does not know the column projection, so its rebuild would apply
// the action to balances.
func (a Action) In(name string, custom bool) Action {
	a.Projection = name
	if custom {
		a.Result += " in " + name
	}
	return a
}

// Because returns the action with a further reason added to the actor's reason.
func (a Action) Because(why string) Action {
	switch {
	case why == "":
	case a.Reason == "":
		a.Reason = why
	default:
		a.Reason += "; " + why
	}
	return a
}

// RecordActions records actions that change no account. It records all of them or none.
func RecordActions(ctx context.Context, pool *pgxpool.Pool, actions []Action) error {
	const chunk = 5000
	err := TransactOnce(ctx, pool, func(ctx context.Context, tx *Tx) error {
		for piece := range slices.Chunk(actions, chunk) {
			QueueActions(tx, piece)
			if err := tx.Send(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("record actions: %w", err)
	}
	return nil
}

// QueueActions queues the insert of actions.
func QueueActions(tx *Tx, actions []Action) {
	if len(actions) == 0 {
		return
	}
	rows, _ := json.Marshal(actions) //nolint:errchkjson // texts, numbers and booleans can always be encoded
	tx.Queue(sql.Query("action_insert"), string(rows))
}

// DeadLetterPlace is the position of a record in a DLQ topic, and the position of its original
// record.
type DeadLetterPlace struct {
	Partition int32
	Offset    int64
	Original  projection.RecordRef
}

// DeadLetterHistory says what operators have done about a dead letter.
type DeadLetterHistory struct {
	Discarded bool
	Replays   int // recorded replays to the database, with or without an effect
}

// LoadHistory reads what was done about records of a DLQ topic. Each key of the result is a
// record's partition and offset in that topic. A record without an action has no entry.
func LoadHistory(ctx context.Context, pool *pgxpool.Pool, dlqTopic string, places []DeadLetterPlace) (map[[2]int64]DeadLetterHistory, error) {
	n := len(places)
	partitions, offsets := make([]int32, n), make([]int64, n)
	topics, sources, at := make([]string, n), make([]int32, n), make([]int64, n)
	for i, p := range places {
		partitions[i], offsets[i] = p.Partition, p.Offset
		topics[i], sources[i], at[i] = p.Original.Topic, p.Original.Partition, p.Original.Offset
	}
	var (
		history = map[[2]int64]DeadLetterHistory{}
		key     [2]int64
		done    DeadLetterHistory
		args    = []any{dlqTopic, partitions, offsets, topics, sources, at}
	)
	err := Each(ctx, pool, "load actions", sql.Query("action_history"), args, []any{&key[0], &key[1], &done.Discarded, &done.Replays}, func() error {
		history[key] = done
		return nil
	})
	return history, err
}
