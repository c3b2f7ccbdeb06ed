package own_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/session"
	"projector/projection"
	"projector/projection/event"
	"projector/projection/file"
	"projector/readmodel"
	"projector/readmodel/own"
	"projector/readmodel/readmodeltest"
)

func TestMain(m *testing.M) { readmodeltest.Main(m) }

const loyalty = `-- projection: loyalty_points
-- mode: %s
-- types: PointsEarned, PointsSpent
INSERT INTO loyalty (account_id, points, events, versions)
SELECT account_id, sum((data->>'points')::bigint), count(*), string_agg(version::text, ' ' ORDER BY version)
FROM new_events GROUP BY account_id
ON CONFLICT (account_id) DO UPDATE SET points = loyalty.points + EXCLUDED.points, events = loyalty.events + EXCLUDED.events,
    versions = loyalty.versions || ' ' || EXCLUDED.versions;
INSERT INTO seen SELECT event_id, "offset" FROM new_events;
`

// The function stage returns a database with the tables that the projection's SQL writes.
func stage(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := readmodeltest.OpenPool(t)
	execute(t, pool, `CREATE TABLE loyalty (account_id text PRIMARY KEY, points bigint NOT NULL CHECK (points >= 0), events bigint NOT NULL, versions text NOT NULL);
		CREATE TABLE seen (event_id text, "offset" bigint)`)
	return pool
}

func execute(t *testing.T, pool *pgxpool.Pool, statements string) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), statements); err != nil {
		t.Fatal(err)
	}
}

func parse(t *testing.T, text string) file.Projection {
	t.Helper()
	p, err := file.Parse("own.sql", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// feeder runs one partition of the projection through a session.
type feeder struct {
	t       *testing.T
	proj    session.Projection
	session *session.Session
	driver  *driver
	format  event.Format
	next    int64
}

func feed(t *testing.T, pool *pgxpool.Pool, p file.Projection) *feeder {
	t.Helper()
	return feedAs(t, pool, p, "g")
}

func feedAs(t *testing.T, pool *pgxpool.Pool, p file.Projection, group string) *feeder {
	t.Helper()
	proj := own.Definition(p).Open(readmodel.RunConfig{
		Pool: pool, Formats: event.Always(formatOf(p)), FirstVersion: 1, ParkLimit: 100, CacheBytes: func() int { return 1 << 20 },
		InboxRetention: time.Hour,
	})(readmodel.Partition{Group: group, Topic: "events"})
	return feederOf(t, p, proj)
}

func formatOf(p file.Projection) event.Format {
	return event.NewJSON(event.Options{FirstVersion: 1, CustomTypes: p.Types})
}

// TestTheSizeOfWhatIsParkedIsBounded shows that an ordered projection parks no more than ParkBytes
// bytes of an account, and that the events beyond this limit can be applied later.
func TestTheSizeOfWhatIsParkedIsBounded(t *testing.T) {
	t.Parallel()
	pool := stage(t)
	p := parse(t, fmt.Sprintf(loyalty, file.Ordered))
	proj := own.Definition(p).Open(readmodel.RunConfig{
		Pool: pool, Formats: event.Always(formatOf(p)), FirstVersion: 1, ParkLimit: 100, ParkBytes: 1000, CacheBytes: func() int { return 1 << 20 },
	})(readmodel.Partition{Group: "g", Topic: "events"})
	f := feederOf(t, p, proj)
	var log []string
	for v := 2; v <= 30; v++ {
		log = append(log, points("a", v, 1))
		f.consume(log)
	}
	parked, err := readmodel.CountParked(t.Context(), pool, p.Name)
	if err != nil || parked.Bytes == 0 || parked.Bytes > 1000 || parked.Events != 29 {
		t.Fatalf("parked: %+v %v", parked, err)
	}
	log = append(log, points("a", 1, 1))
	for v := 2; v <= 30; v++ { // all events are delivered again
		log = append(log, points("a", v, 1))
	}
	f.consume(log)
	same(t, "rows", rows(t, pool, "SELECT account_id, points, versions FROM loyalty ORDER BY account_id"), []string{"a 30 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30"})
	if parked, err = readmodel.CountParked(t.Context(), pool, p.Name); err != nil || parked.Bytes != 0 {
		t.Errorf("parked: %+v %v", parked, err)
	}
}

func feederOf(t *testing.T, p file.Projection, proj session.Projection) *feeder {
	t.Helper()
	f := &feeder{t: t, proj: proj, driver: &driver{}, format: formatOf(p)}
	f.begin(1000)
	return f
}

// The method begin claims the partition with a session that flushes at most the given number of
// events.
func (f *feeder) begin(events int) {
	f.t.Helper()
	f.session = session.New(f.proj, f.driver, session.Limits{Events: events, Within: time.Second, Silence: 10 * time.Second, Freely: 2})
	f.claim()
}

func (f *feeder) claim() {
	f.t.Helper()
	f.claimAt(projection.NoOffset)
}

func (f *feeder) claimAt(committed int64) {
	f.t.Helper()
	pos, _, err := f.session.Claim(f.t.Context(), projection.Claim{Owner: "me", TopicID: "id", Committed: committed})
	if err != nil {
		f.t.Fatal(err)
	}
	f.session.Begin(pos)
	f.next = pos.Next
}

// consume consumes the log to its end, as a worker does.
func (f *feeder) consume(log []string) {
	f.t.Helper()
	for tries := 0; f.next < int64(len(log)) || f.proj.Pending().Healing; tries++ {
		if tries > 200 {
			f.t.Fatal("no end")
		}
		err := f.try(log[f.next:])
		switch {
		case err == nil:
			f.next = int64(len(log))
		case errors.Is(err, session.ErrAgain):
			f.claim()
		default:
			f.t.Fatal(err)
		}
	}
}

func (f *feeder) try(values []string) error {
	var records []projection.DecodedRecord
	for i, value := range values {
		r := projection.DecodedRecord{Record: projection.Record{
			Topic: "events", Offset: f.next + int64(i), LeaderEpoch: projection.NoEpoch, Timestamp: 1_700_000_000_000,
			Message: event.Message{Value: []byte(value)},
		}}
		f.format.Decode(r.Record.Message, &r.Decoded)
		records = append(records, r)
	}
	for len(records) > 0 {
		n, err := f.session.Fold(f.t.Context(), records)
		if err != nil {
			return err
		}
		records = records[n:]
		if err := f.flush(); err != nil {
			return err
		}
	}
	for {
		if err := f.flush(); err != nil {
			return err
		}
		healed, err := f.session.Heal(f.t.Context())
		if err != nil || !healed {
			return err
		}
	}
}

// The method flush flushes and counts the durable events.
func (f *feeder) flush() error {
	r := f.session.Flush(f.t.Context())
	switch r.Outcome {
	case session.Nothing, session.Written:
		f.driver.healed += r.Flushed.Healed
		for i, n := range r.Flushed.Outcomes {
			f.driver.counts[i] += n
		}
		return nil
	case session.Refused, session.Overtaken:
		return session.ErrAgain
	case session.Failed, session.Stuck, session.Confirmed, session.Dropped:
	}
	f.driver.failed = r.Err
	return r.Err
}

// driver records what is published and counted.
type driver struct {
	letters []projection.DeadLetter
	counts  projection.OutcomeCounts
	healed  int
	failed  error
}

func (d *driver) Read(ctx context.Context, _ string, fn func(context.Context) error) error {
	return fn(ctx)
}

func (d *driver) Publish(ctx context.Context, _ int64, letters []projection.DeadLetter, verify func(context.Context) error) error {
	if len(letters) == 0 {
		return nil
	}
	if err := verify(ctx); err != nil {
		return err
	}
	d.letters = append(d.letters, letters...)
	return nil
}

// The method classes returns the classes of the dead letters, with their events.
func (d *driver) classes() []string {
	var all []string
	for _, l := range d.letters {
		all = append(all, string(l.Class)+" "+l.EventID)
	}
	return all
}

func points(account string, version int, n any) string {
	return typed("PointsEarned", account, version, n)
}

func typed(kind, account string, version int, n any) string {
	return fmt.Sprintf(`{"eventId":"%s-%d","eventType":%q,"accountId":%q,"version":%d,"occurredAt":"2026-01-01T00:00:00.5Z","data":{"points":"%v"}}`,
		account, version, kind, account, version, n)
}

// The function rows returns the rows of a query, each as one line.
func rows(t *testing.T, pool *pgxpool.Pool, query string) []string {
	t.Helper()
	found, err := pool.Query(t.Context(), "SELECT concat_ws(' ', VARIADIC ARRAY(SELECT value FROM json_each_text(row_to_json(r)))) FROM ("+query+") r")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\ngot  %s\nwant %s", what, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

func TestEventsComeOnceAndInOrder(t *testing.T) {
	t.Parallel()
	log := []string{
		points("a", 1, 5), points("b", 1, 7), points("a", 2, 1), points("a", 1, 5), // the last event is a duplicate
		typed("Other", "a", 3, 100), points("a", 4, 2), // the first event is ignored, but the version advances
		points("c", 3, 1), points("c", 2, 1), // gaps
		points("b", 2, 1), points("c", 1, 1), points("c", 4, 2),
		`{"broken`, points("b", 3, "x"), points("b", 4, 1),
	}
	for mode, want := range map[file.Mode]struct{ rows, letters []string }{
		file.Ordered: {
			rows: []string{"a 8 3 1 2 4", "b 8 2 1 2", "c 5 4 1 2 3 4"},
			// PostgreSQL refuses b-3, and the events after it wait.
			letters: []string{"malformed_payload ", "rejected_by_database b-3", "version_gap b-4", "version_gap c-2", "version_gap c-3"},
		},
		file.Once: {
			rows:    []string{"a 8 3", "b 9 3", "c 5 4"},
			letters: []string{"malformed_payload ", "rejected_by_database b-3"},
		},
	} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			pool := stage(t)
			f := feed(t, pool, parse(t, fmt.Sprintf(loyalty, mode)))
			f.consume(log)
			columns := "account_id, points, events, versions"
			if mode == file.Once {
				columns = "account_id, points, events"
			}
			same(t, "rows", rows(t, pool, "SELECT "+columns+" FROM loyalty ORDER BY account_id"), want.rows)
			letters := slices.Compact(slices.Sorted(slices.Values(f.driver.classes())))
			same(t, "dead letters", letters, want.letters)
			same(t, "events seen twice", rows(t, pool, "SELECT event_id FROM seen GROUP BY event_id HAVING count(*) > 1"), nil)
		})
	}
}

// TestASlowStatementGetsFewerEvents shows that no event is refused if the projection's SQL takes
// longer than the statement timeout. The next attempts run the SQL on fewer events.
func TestASlowStatementGetsFewerEvents(t *testing.T) {
	t.Parallel()
	const events, slow = 100, "SET LOCAL statement_timeout = '200ms'; SELECT pg_sleep(0.005) FROM new_events; INSERT INTO loyalty"
	var log []string
	for version := range events {
		log = append(log, points("a", version+1, 1))
	}
	for _, mode := range []file.Mode{file.Ordered, file.Once} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			pool := stage(t)
			f := feed(t, pool, parse(t, strings.Replace(fmt.Sprintf(loyalty, mode), "INSERT INTO loyalty", slow, 1)))
			failed := 0
			for f.next < events {
				if err := f.try(log[f.next:]); err == nil {
					f.next = events
					continue
				}
				if failed++; failed > 500 { // on a slow machine, some attempts fail with one event too
					t.Fatal(f.driver.failed)
				}
				f.claim()
			}
			same(t, "rows", rows(t, pool, "SELECT points, events FROM loyalty"), []string{"100 100"})
			if failed == 0 || len(f.driver.letters) > 0 {
				t.Errorf("failed %d times, dead letters %v", failed, f.driver.classes())
			}
		})
	}
}
