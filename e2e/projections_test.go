package e2e_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"

	"projector/internal/testbank"
)

// book describes how to read the table of a projection and what the table must contain.
type book struct {
	projection string
	query      string // returns key and row, with the row in the format of testbank
	want       func([]testbank.Record) map[string]string
}

var books = []book{
	{"account_statement", `SELECT account_id || ' ' || version,
		concat_ws(' ', event_id, event_type, coalesce(amount::text, '-'), currency,
			to_char(occurred_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'), coalesce(correlation_id, '-'))
		FROM account_statement`, testbank.Statement},
	{"daily_turnover", `SELECT day || ' ' || currency, concat_ws(' ', credited, debited, events) FROM daily_turnover`, testbank.Turnover},
}

// The method differs returns a check for await. It succeeds when the table contains what the oracle
// computes from the records.
func (w *world) differs(b book, records []testbank.Record) func() string {
	want := b.want(records)
	return func() string {
		rows, err := w.db.Query(w.t.Context(), b.query)
		if err != nil {
			w.t.Fatal(err)
		}
		got := map[string]string{}
		var key, row string
		if _, err := pgx.ForEachRow(rows, []any{&key, &row}, func() error { got[key] = row; return nil }); err != nil {
			w.t.Fatal(err)
		}
		var wrong []string
		for _, key := range slices.Sorted(maps.Keys(want)) {
			if got[key] != want[key] {
				wrong = append(wrong, fmt.Sprintf("%s: got %q, want %q", key, got[key], want[key]))
			}
			delete(got, key)
		}
		for key := range got {
			wrong = append(wrong, key+": must not exist")
		}
		if len(wrong) == 0 {
			return ""
		}
		return fmt.Sprintf("%d rows differ, the first of them:\n%s", len(wrong), strings.Join(wrong[:min(5, len(wrong))], "\n"))
	}
}

// rewind commits offset 0 of each partition for the group in Kafka.
func (w *world) rewind() {
	w.t.Helper()
	for p := range w.ends(w.topic) {
		w.commit(p, 0)
	}
}

// commit sets the group's committed offset of a partition. The group must have no members.
func (w *world) commit(partition int32, offset int64) {
	w.t.Helper()
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: w.topic, Partition: partition, At: offset, LeaderEpoch: -1})
	if err := w.admin.CommitAllOffsets(w.t.Context(), w.group, offsets); err != nil {
		w.t.Fatal(err)
	}
}

// The method consumed returns a check for await. It succeeds when the program has consumed n
// records.
func (p *program) consumed(n int64) func() string {
	return func() string {
		if status, body := p.Get("/metrics"); status != 200 {
			return body
		}
		var got float64
		for name, value := range p.Metrics() {
			if strings.HasPrefix(name, "projector_records_total{") {
				got += value
			}
		}
		if got < float64(n) {
			return fmt.Sprintf("consumed %v of %d", got, n)
		}
		return ""
	}
}

// TestProjectionsEqualTheOracle delivers a stream with repeated records and repeated ranges.
// Meanwhile replicas start, stop and are killed. Then all records are read again by the same group
// and by another group.
func TestProjectionsEqualTheOracle(t *testing.T) {
	t.Parallel()
	for _, b := range books {
		t.Run(b.projection, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 4)
			w.slowWrites(5 * time.Millisecond)
			n := seed(t)
			records := testbank.Generate(testbank.Options{
				Seed: n, Records: scaled(24_000), Partitions: w.partitions, Accounts: 500, Clean: true, Ranges: true,
			})
			total := int64(len(records))
			finish := w.feed(records, len(records)/300, 25*time.Millisecond)
			choose := "--projection=" + b.projection

			first := w.start(choose)
			await(t, "the first alone", w.passed(total/8))
			second := w.start(choose)
			await(t, "the second has partitions", second.Logged("partitions assigned"))
			await(t, "two", w.passed(total/4))
			first.Kill()
			w.evict()
			await(t, "one is left", w.passed(total/2))
			third := w.start(choose)
			await(t, "the third has partitions", third.Logged("partitions assigned"))
			second.terminate()
			finish()
			await(t, "every record consumed", w.arrived)
			await(t, "the table is the oracle's", w.differs(b, records))
			third.terminate()
			w.atRest()

			w.rewind()
			again := w.start(choose)
			await(t, "everything read again", again.consumed(total))
			w.group += "-renamed"
			otherGroup := w.start(choose)
			await(t, "everything read by another group", otherGroup.consumed(total))
			await(t, "ready", otherGroup.Answers("/readyz", 200, ""))
			again.terminate()
			otherGroup.terminate()
			if wrong := w.differs(b, records)(); wrong != "" {
				t.Error(wrong)
			}
		})
	}
}
