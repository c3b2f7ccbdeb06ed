package readmodeltest

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/session"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/balance"
)

// Worker is an opened projection of a partition. The test calls it step by step.
type Worker struct {
	session.Projection
	Format event.Format
	Next   int64
	Epoch  int32 // epoch of the partition's leader

	t         testing.TB
	partition int32
}

// StartWorker opens a new, migrated database. It also returns a worker of account_balance that has
// claimed Partition from the start of the log.
func StartWorker(t testing.TB) (*pgxpool.Pool, *Worker) {
	t.Helper()
	pool := OpenPool(t)
	w := NewWorker(t, pool, Partition)
	w.MustClaim("me", projection.NoOffset)
	return pool, w
}

// NewWorker returns a worker of account_balance that has not claimed its partition yet.
func NewWorker(t testing.TB, pool *pgxpool.Pool, p readmodel.Partition) *Worker {
	t.Helper()
	return NewWorkerWith(t, pool, p, func(*balance.Config) {})
}

// NewWorkerWith is like NewWorker. The function set may change the configuration.
func NewWorkerWith(t testing.TB, pool *pgxpool.Pool, p readmodel.Partition, set func(*balance.Config)) *Worker {
	t.Helper()
	format := JSONFormat(t)
	cfg := balance.Config{RunConfig: readmodel.RunConfig{
		Pool: pool, Formats: event.Always(format), FirstVersion: 1, ParkLimit: 100, CacheBytes: func() int { return 1 << 20 },
	}}
	set(&cfg)
	return &Worker{t: t, Format: format, Projection: balance.New(cfg, p), partition: p.Number}
}

// MustClaim claims the partition for an owner.
func (w *Worker) MustClaim(owner string, committed int64) projection.Position {
	w.t.Helper()
	pos, err := w.Claim(w.t.Context(), projection.Claim{Owner: owner, TopicID: "id", LogStart: 0, Committed: committed})
	if err != nil {
		w.t.Fatal(err)
	}
	w.Next = pos.Next
	return pos
}

// MustFold folds the values at the next offsets, without writing.
func (w *Worker) MustFold(values ...string) {
	w.t.Helper()
	records := w.Records(values...)
	for len(records) > 0 {
		n, err := w.Fold(w.t.Context(), records, 1000)
		if err != nil {
			w.t.Fatal(err)
		}
		if n == 0 {
			w.t.Fatalf("no record was folded, because %d events are pending: call MustFlush first", w.Pending().Events)
		}
		records = records[n:]
	}
}

// MustFoldAlone folds one event with the limit 1, as for a flush of one event.
func (w *Worker) MustFoldAlone(value string) {
	w.t.Helper()
	if n, err := w.Fold(w.t.Context(), w.Records(value), 1); n != 1 || err != nil {
		w.t.Fatalf("folded %d, error %v", n, err)
	}
}

// Records returns decoded records at the next offsets. An empty value is a tombstone.
func (w *Worker) Records(values ...string) []projection.DecodedRecord {
	var records []projection.DecodedRecord
	for _, value := range values {
		j := projection.DecodedRecord{Record: projection.Record{
			Topic: "events", Partition: w.partition, Offset: w.Next, LeaderEpoch: w.Epoch, Timestamp: 1_700_000_000_000,
			Message: event.Message{Key: []byte("k"), Value: []byte(value), Headers: []event.Header{{Key: "h", Value: nil}, {Key: "h", Value: []byte{}}}},
		}}
		if value == "" {
			j.Record.Value = nil
		}
		w.Format.Decode(j.Record.Message, &j.Decoded)
		records = append(records, j)
		w.Next++
	}
	return records
}

// Heal folds a part of the parked events and reports whether there are more.
func (w *Worker) Heal(limit int) (bool, error) {
	_, err := w.Fold(w.t.Context(), nil, limit)
	return w.Pending().Healing, err
}

// VerifyAndFlush verifies and writes, and returns the written changes.
func (w *Worker) VerifyAndFlush() (projection.Flushed, error) {
	w.t.Helper()
	if err := w.Verify(w.t.Context()); err != nil {
		return projection.Flushed{}, err
	}
	return w.Flush(w.t.Context(), projection.NextOffset{Offset: w.Next, LeaderEpoch: w.Epoch})
}

// MustFlush is like VerifyAndFlush and fails the test after an error.
func (w *Worker) MustFlush() projection.Flushed {
	w.t.Helper()
	changes, err := w.VerifyAndFlush()
	if err != nil {
		w.t.Fatal(err)
	}
	return changes
}

// Mapping is a readmodel.Mapping for tests. Two different values are two mappings that read events
// differently.
type Mapping string

// Meaning implements readmodel.Mapping.
func (m Mapping) Meaning() string { return string(m) }

// Differs implements readmodel.Mapping.
func (m Mapping) Differs(meaning string) (stored, now string) {
	if meaning == string(m) {
		return "", ""
	}
	return "another --mapping", "--mapping=FILE"
}
