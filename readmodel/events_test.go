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

// counted is an Observer that keeps what it is told.
type counted struct{ hits, misses, errors int }

func (*counted) Parked(readmodel.ParkedSummary) {}
func (*counted) InboxRows(int64)                {}
func (*counted) InboxPruned(int64)              {}
func (c *counted) DedupHit(n int)               { c.hits += n }
func (c *counted) DedupMiss(n int)              { c.misses += n }
func (c *counted) DedupError(n int)             { c.errors += n }

// feeder is a partition's projection of any kind, fed by hand.
type feeder struct {
	partition int32
	session.Projection
	t      *testing.T
	format event.Format
	next   int64
	epoch  int32 // of the partition's leader
	counts map[string]int
	faults []string // dead letters, as class and event id
	told   *counted
}

// newFeeder feeds a projection without its recent-event cache, so that PostgreSQL is
// asked.
func newFeeder(t *testing.T, pool *pgxpool.Pool, kind readmodel.Definition, p readmodel.Partition) *feeder {
	t.Helper()
	k := kind.(appended.Definition)
	k.Recent = nil
	return feederOf(t, pool, k, p)
}

// feederOf feeds a projection as it is.
func feederOf(t *testing.T, pool *pgxpool.Pool, kind readmodel.Definition, p readmodel.Partition) *feeder {
	t.Helper()
	told := &counted{}
	open := kind.Open(readmodel.RunConfig{
		Pool: pool, FirstVersion: 1, InboxRetention: time.Hour, CacheBytes: func() int { return 1 << 20 }, Observer: told,
	})
	f := &feeder{t: t, told: told, partition: p.Number, format: jsonFormat(t), Projection: open(p), counts: map[string]int{}}
	f.claim(projection.NoOffset)
	return f
}

// claim takes the partition over and goes on where that says.
func (f *feeder) claim(committed int64) {
	f.t.Helper()
	pos, err := f.Claim(f.t.Context(), projection.Claim{Owner: "me", TopicID: "id", Committed: committed})
	if err != nil {
		f.t.Fatal(err)
	}
	f.next = pos.Next
}

// fold folds values at the offsets that follow.
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

// flush verifies and writes, and counts what came of it.
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

// feed folds and flushes. As the consumer does, it goes back to the durable position
// when the batch has to be decided again.
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

// outcomes are the counts so far: applied, duplicate, ignored, dead_lettered.
func (f *feeder) outcomes() string {
	return fmt.Sprint(f.counts["applied"], f.counts["duplicate"], f.counts["ignored"], f.counts["dead_lettered"])
}

func (f *feeder) letters() string { return strings.Join(f.faults, ", ") }

// eventAs is an event with all that the projections tell apart.
func eventAs(id, kind, account string, version int, at, data string) string {
	return fmt.Sprintf(`{"eventId":%q,"eventType":%q,"accountId":%q,"version":%d,"occurredAt":%q,"correlationId":"c-%s","data":%s}`,
		id, kind, account, version, at, id, data)
}

const noon = "2026-01-01T12:00:00Z"

func eur(amount string) string { return `{"amount":"` + amount + `","currency":"EUR"}` }

// lines answers a query's first column, line by line.
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

// Texts of an event are parts of its record, so all of the record is in memory until the
// flush: the bound on what is pending must know its key and headers too.
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
