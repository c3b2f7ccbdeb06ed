package readmodel_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/session"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/appended"
	"projector/readmodel/statement"
)

// counted is an Observer that counts its calls.
type counted struct{ hits, misses, errors int }

func (*counted) Parked(readmodel.ParkedSummary) {}
func (*counted) InboxRows(int64)                {}
func (*counted) InboxPruned(int64)              {}
func (c *counted) DedupHit(n int)               { c.hits += n }
func (c *counted) DedupMiss(n int)              { c.misses += n }
func (c *counted) DedupError(n int)             { c.errors += n }

// feeder is the projection of a partition. The test calls it step by step.
type feeder struct {
	partition int32
	session.Projection
	t        *testing.T
	format   event.Format
	next     int64
	epoch    int32 // epoch of the partition's leader
	counts   map[string]int
	faults   []string // dead letters, as class and event id
	reported *counted
}

// newFeeder returns a feeder for a projection without its recent-event cache, so that PostgreSQL is
// queried.
func newFeeder(t *testing.T, pool *pgxpool.Pool, kind readmodel.Definition, p readmodel.Partition) *feeder {
	t.Helper()
	k := kind.(appended.Definition)
	k.Recent = nil
	return feederOf(t, pool, k, p)
}

// feederOf returns a feeder for an unchanged projection.
func feederOf(t *testing.T, pool *pgxpool.Pool, kind readmodel.Definition, p readmodel.Partition) *feeder {
	t.Helper()
	reported := &counted{}
	open := kind.Open(readmodel.RunConfig{
		Pool: pool, FirstVersion: 1, InboxRetention: time.Hour, CacheBytes: func() int { return 1 << 20 }, Observer: reported,
	})
	f := &feeder{t: t, reported: reported, partition: p.Number, format: jsonFormat(t), Projection: open(p), counts: map[string]int{}}
	f.claim(projection.NoOffset)
	return f
}

// claim claims the partition and continues at the position that the claim returns.
func (f *feeder) claim(committed int64) {
	f.t.Helper()
	pos, err := f.Claim(f.t.Context(), projection.Claim{Owner: "me", TopicID: "id", Committed: committed})
	if err != nil {
		f.t.Fatal(err)
	}
	f.next = pos.Next
}

// fold folds the values at the next offsets.
func (f *feeder) fold(values ...string) {
	f.t.Helper()
	var records []projection.DecodedRecord
	for _, value := range values {
		j := projection.DecodedRecord{Record: projection.Record{Topic: "events", Partition: f.partition, Offset: f.next, LeaderEpoch: f.epoch, Message: event.Message{Value: []byte(value)}}}
		if value == "" {
			j.Record.Value = nil
		}
		f.format.Decode(j.Record.Message, &j.Decoded)
		records = append(records, j)
		f.next++
	}
	for len(records) > 0 {
		n, err := f.Fold(f.t.Context(), records, 1000)
		if err != nil {
			f.t.Fatal(err)
		}
		records = records[n:]
	}
}

// flush verifies and writes, and counts the outcomes.
func (f *feeder) flush() error {
	f.t.Helper()
	if err := f.Verify(f.t.Context()); err != nil {
		return err
	}
	changes, err := f.Flush(f.t.Context(), projection.NextOffset{Offset: f.next, LeaderEpoch: f.epoch})
	if err != nil {
		return err
	}
	for _, o := range projection.Outcomes() {
		f.counts[o.String()] += changes.Outcomes[o]
	}
	for i := range changes.DeadLetters {
		f.faults = append(f.faults, string(changes.DeadLetters[i].Class)+" "+changes.DeadLetters[i].EventID)
	}
	return nil
}

// feed folds and flushes. If the batch must be decided again, it returns to the durable position,
// as the consumer does.
func (f *feeder) feed(values ...string) {
	f.t.Helper()
	for tries := 0; ; tries++ {
		f.fold(values...)
		err := f.flush()
		if err == nil {
			return
		}
		if !errors.Is(err, projection.ErrStale) || tries == 3 {
			f.t.Fatal(err)
		}
		f.claim(projection.NoOffset)
	}
}

// outcomes returns the counts so far: applied, duplicate, ignored, dead_lettered.
func (f *feeder) outcomes() string {
	return fmt.Sprint(f.counts["applied"], f.counts["duplicate"], f.counts["ignored"], f.counts["dead_lettered"])
}

func (f *feeder) letters() string { return strings.Join(f.faults, ", ") }

// eventAs returns an event with all fields that the projections use.
func eventAs(id, kind, account string, version int, at, data string) string {
	return fmt.Sprintf(`{"eventId":%q,"eventType":%q,"accountId":%q,"version":%d,"occurredAt":%q,"correlationId":"c-%s","data":%s}`,
		id, kind, account, version, at, id, data)
}

const noon = "2026-01-01T12:00:00Z"

func eur(amount string) string { return `{"amount":"` + amount + `","currency":"EUR"}` }

// lines returns the first column of a query, one line for each row.
func lines(t *testing.T, pool *pgxpool.Pool, query string, args ...any) string {
	t.Helper()
	rows, err := pool.Query(t.Context(), query, args...)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, "\n")
}

func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

// The strings of an event point into its record. The whole record therefore stays in memory until
// the flush. So the pending size must include the record's key and headers.
func TestPendingCountsKeyAndHeaders(t *testing.T) {
	pool := openPool(t)
	const large = 1 << 20
	for name, value := range map[string]string{
		"good": eventAs("e-1", "FundsCredited", "a", 1, noon, eur("1")), "unreadable": "{", "malformed": eventAs("e-2", "FundsCredited", "a", 2, noon, "{}"),
	} {
		f := newFeeder(t, pool, statement.Definition(), partition)
		records := []projection.DecodedRecord{{Record: projection.Record{Message: event.Message{
			Key: make([]byte, large), Value: []byte(value), Headers: []event.Header{{Key: "h", Value: make([]byte, large)}},
		}}}}
		f.format.Decode(records[0].Record.Message, &records[0].Decoded)
		if _, err := f.Fold(t.Context(), records, 10); err != nil {
			t.Fatal(err)
		}
		if got := f.Pending().Bytes; got < 2*large {
			t.Errorf("%s: %d bytes are pending, of a record of %d", name, got, 2*large)
		}
	}
}
