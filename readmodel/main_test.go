package readmodel_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/devstack/devtest"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/balance"
)

func TestMain(m *testing.M) {
	devtest.Main(m, func(ctx context.Context, url string) error {
		_, err := readmodel.Migrate(ctx, url)
		return err
	})
}

// openPool opens a new, migrated database.
func openPool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return openPoolAt(t, devtest.Database(t))
}

func openPoolAt(t testing.TB, url string, options ...readmodel.ConnectOption) *pgxpool.Pool {
	t.Helper()
	pool, err := readmodel.OpenPool(t.Context(), url, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func jsonFormat(t testing.TB) event.Format {
	t.Helper()
	currencies, err := event.ParseCurrencies("all")
	if err != nil {
		t.Fatal(err)
	}
	return event.NewJSON(event.Options{FirstVersion: 1, Currencies: currencies})
}

// worker is the projection of a partition. The test calls it step by step.
type worker struct {
	*balance.Balance
	t      *testing.T
	format event.Format
	next   int64
	epoch  int32 // epoch of the partition's leader
}

var partition = readmodel.Partition{Group: "g", Topic: "events", Number: 0}

func newWorker(t *testing.T, pool *pgxpool.Pool, p readmodel.Partition) *worker {
	t.Helper()
	return newWorkerWith(t, pool, p, func(*balance.Config) {})
}

func newWorkerWith(t *testing.T, pool *pgxpool.Pool, p readmodel.Partition, set func(*balance.Config)) *worker {
	t.Helper()
	format := jsonFormat(t)
	cfg := balance.Config{
		Pool: pool, Formats: event.Always(format), FirstVersion: 1, ParkLimit: 100, CacheBytes: func() int { return 1 << 20 },
	}
	set(&cfg)
	return &worker{t: t, format: format, Balance: balance.New(cfg, p)}
}

// claim claims the partition for an owner.
func (w *worker) claim(owner string, committed int64) projection.Position {
	w.t.Helper()
	pos, err := w.Claim(w.t.Context(), projection.Claim{Owner: owner, TopicID: "id", LogStart: 0, Committed: committed})
	if err != nil {
		w.t.Fatal(err)
	}
	w.next = pos.Next
	return pos
}

// fold folds the values at the next offsets, without writing.
func (w *worker) fold(values ...string) {
	w.t.Helper()
	records := w.records(values...)
	for len(records) > 0 {
		n, err := w.Fold(w.t.Context(), records, 1000)
		if err != nil {
			w.t.Fatal(err)
		}
		records = records[n:]
	}
}

// foldAlone folds one event with the limit 1, as for a flush of one event.
func (w *worker) foldAlone(value string) {
	w.t.Helper()
	if n, err := w.Fold(w.t.Context(), w.records(value), 1); n != 1 || err != nil {
		w.t.Fatalf("folded %d, error %v", n, err)
	}
}

// records returns decoded records at the next offsets.
func (w *worker) records(values ...string) []projection.DecodedRecord {
	var records []projection.DecodedRecord
	for _, value := range values {
		j := projection.DecodedRecord{Record: projection.Record{
			Topic: "events", Offset: w.next, LeaderEpoch: w.epoch, Timestamp: 1_700_000_000_000,
			Message: event.Message{Key: []byte("k"), Value: []byte(value), Headers: []event.Header{{Key: "h", Value: nil}, {Key: "h", Value: []byte{}}}},
		}}
		w.format.Decode(j.Record.Message, &j.Decoded)
		records = append(records, j)
		w.next++
	}
	return records
}

// heal folds a part of the parked events and reports whether there are more.
func (w *worker) heal(limit int) (bool, error) {
	_, err := w.Fold(w.t.Context(), nil, limit)
	return w.Pending().Healing, err
}

// flush verifies and writes, and returns the written changes.
func (w *worker) flush() (projection.Flushed, error) {
	w.t.Helper()
	if err := w.Verify(w.t.Context()); err != nil {
		return projection.Flushed{}, err
	}
	return w.Flush(w.t.Context(), projection.NextOffset{Offset: w.next, LeaderEpoch: w.epoch})
}

// The function at returns a position in a partition whose leader has never changed.
func at(offset int64) projection.NextOffset { return projection.NextOffset{Offset: offset} }

func (w *worker) mustFlush() projection.Flushed {
	w.t.Helper()
	changes, err := w.flush()
	if err != nil {
		w.t.Fatal(err)
	}
	return changes
}

func credit(account string, version int, amount, currency string) string {
	return fmt.Sprintf(`{"eventId":"%s-%d","eventType":"FundsCredited","accountId":%q,"version":%d,`+
		`"occurredAt":"2026-01-01T00:00:00.5Z","data":{"amount":%q,"currency":%q}}`,
		account, version, account, version, amount, currency)
}

// current returns the row of an account in account_balance_current as text.
func current(t *testing.T, pool *pgxpool.Pool, account string) string {
	t.Helper()
	var line string
	err := pool.QueryRow(t.Context(), `SELECT concat_ws(' ', coalesce(currency, '-'), coalesce(balance::text, '-'),
		coalesce(version::text, '-'), coalesce(status, '-'), coalesce(last_event_id, '-'), stale::text, coalesce(waiting_for_version::text, '-'))
		FROM account_balance_current WHERE account_id = $1`, account).Scan(&line)
	if err != nil {
		t.Fatalf("account %s: %v", account, err)
	}
	return line
}
