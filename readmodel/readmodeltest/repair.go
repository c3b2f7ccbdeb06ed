package readmodeltest

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/repair"
)

// NewRepair returns a repair of account_balance. One transaction has at most piece events, or the
// default number if piece is 0.
func NewRepair(t testing.TB, pool *pgxpool.Pool, piece int) *repair.Repair {
	t.Helper()
	return repair.New(readmodel.RepairConfig{Pool: pool, Formats: event.Always(JSONFormat(t)), FirstVersion: 1, Piece: piece})
}

// ReplayOf returns repair records with these values. Their offsets are 0, 1, …
func ReplayOf(format event.Format, values ...string) []*readmodel.RepairRecord {
	var records []*readmodel.RepairRecord
	for i, value := range values {
		r := &readmodel.RepairRecord{}
		r.Reprocessed = true
		r.Record = projection.Record{Topic: "events", Offset: int64(i), Message: event.Message{Value: []byte(value)}}
		format.Decode(r.Record.Message, &r.Decoded)
		r.Action = readmodel.Action{
			Kind: readmodel.ActionReplay, AccountID: r.Decoded.Event.AccountID, Version: &r.Decoded.Event.Version,
			Topic: "events", Offset: int64(i), DLQTopic: "events.dlq", DLQOffset: int64(i), Class: event.VersionGap, Actor: "me",
		}
		records = append(records, r)
	}
	return records
}
