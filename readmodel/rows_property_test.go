package readmodel_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"projector/projection"
	"projector/readmodel"
	"projector/readmodel/rebuild"
	"projector/readmodel/statement"
	"projector/readmodel/turnover"
)

// rowShadow is a projection rebuilt from a topic that is a list of values.
type rowShadow struct {
	*rebuild.Shadow
	t     *testing.T
	topic []string
	feed  *feeder
	done  rebuild.Swapped
}

func openRowShadow(t *testing.T, pool *pgxpool.Pool, kind readmodel.Definition, topic []string) *rowShadow {
	t.Helper()
	shadow, err := rebuild.OpenShadow(t.Context(), pool, kind, 100, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := &rowShadow{Shadow: shadow, t: t, topic: topic}
	t.Cleanup(s.drop)
	s.feed = &feeder{t: t, format: jsonFormat(t), Projection: shadow.Open(readmodel.RunConfig{}, "events", 0), counts: map[string]int{}}
	s.feed.claim(projection.NoOffset)
	return s
}

// drop drops the tables, once.
func (s *rowShadow) drop() {
	if s.Shadow == nil {
		return
	}
	if err := s.Close(context.WithoutCancel(s.t.Context())); err != nil {
		s.t.Error(err)
	}
	s.Shadow = nil
}

// catchUp is a rebuild.CatchUp.
func (s *rowShadow) catchUp(_ context.Context, positions []rebuild.TopicPosition) error {
	end := positions[0].Next
	s.feed.feed(s.topic[min(s.feed.next, end):end]...)
	return nil
}

func (s *rowShadow) compare() rebuild.Report {
	s.t.Helper()
	report, err := s.Compare(s.t.Context(), rebuild.CompareOptions{Topic: "events", List: 100}, s.catchUp)
	if err != nil {
		s.t.Fatal(err)
	}
	return report
}

func (s *rowShadow) swap(remove bool) {
	s.t.Helper()
	var err error
	if s.done, err = s.Swap(s.t.Context(), rebuild.SwapOptions{Topic: "events", Actor: "me", Remove: remove}, s.catchUp); err != nil {
		s.t.Fatal(err)
	}
}

// rowsSeen are the rows of a projection.
var rowsSeen = map[string]string{
	statement.Name: `SELECT concat_ws(' ', account_id, version, event_id, event_type, amount, currency) FROM account_statement ORDER BY account_id, version`,
	turnover.Name:  `SELECT concat_ws(' ', day, currency, credited, debited, events) FROM daily_turnover ORDER BY day, currency`,
}

// rowDamages make something wrong behind the consumers' backs.
var rowDamages = map[string][]string{
	statement.Name: {
		`UPDATE account_statement SET amount = 99 WHERE version = 1`,
		`UPDATE account_statement SET event_id = 'x', currency = NULL WHERE account_id = 'a'`,
		`DELETE FROM account_statement WHERE version = 2`,
		`DELETE FROM account_statement`,
		`INSERT INTO account_statement (account_id, version, event_id, event_type, occurred_at) VALUES ('phantom', 1, 'p', 'AccountOpened', now())`,
	},
	turnover.Name: {
		`UPDATE daily_turnover SET credited = credited + 0.125`,
		`UPDATE daily_turnover SET credited = 3, debited = -1, events = events + 5 WHERE currency = 'EUR'`,
		`UPDATE daily_turnover SET events = 0`,
		`DELETE FROM daily_turnover WHERE currency = 'EUR'`,
		`DELETE FROM daily_turnover`,
		`DELETE FROM inbox WHERE message_id LIKE 'a%'`,
		`DELETE FROM daily_turnover; DELETE FROM inbox`,
		`INSERT INTO daily_turnover VALUES ('1999-01-01', 'EUR', 1.00, 2.00, 3), ('2026-01-02', 'EUR', 1.00, 0.00, 1) ON CONFLICT DO NOTHING`,
	},
}

// TestRowsAreSwappedBesideConsumers: whatever is wrong, and wherever consumers are when rows
// are compared, when they are put right and in between, the rows are in the end what they
// would have been if nothing had ever been wrong, and what comes again changes nothing.
func TestRowsAreSwappedBesideConsumers(t *testing.T) {
	fewerChecks(t)
	for _, kind := range []readmodel.Definition{statement.Definition(), turnover.Definition()} {
		t.Run(kind.Name(), func(t *testing.T) {
			pool, clean := openPool(t), openPool(t)
			rapid.Check(t, func(rt *rapid.T) {
				for _, p := range []*pgxpool.Pool{pool, clean} {
					if _, err := p.Exec(t.Context(), "TRUNCATE account_statement, daily_turnover, inbox, inbox_pruned, projector_position, projector_source"); err != nil {
						rt.Fatal(err)
					}
				}
				rowsBesideConsumers(t, rt, kind, pool, clean)
			})
		})
	}
}

func rowsBesideConsumers(t *testing.T, rt *rapid.T, kind readmodel.Definition, pool, clean *pgxpool.Pool) {
	t.Helper()
	name := kind.Name()
	topic := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) string {
		value := drawValue(rt, []string{"a", "b", "c"})
		return strings.Replace(value, "2026-01-01", rapid.SampledFrom([]string{"2026-01-01", "2026-01-02"}).Draw(rt, "day"), 1)
	}), 1, 30).Draw(rt, "topic")
	at := 0
	live := newFeeder(t, pool, kind, partition)
	// Until a flush goes through: the swap has raised the fence.
	until := func(end int) {
		t.Helper()
		for tries := 0; at < end; tries++ {
			live.fold(topic[at:end]...)
			if err := live.flush(); err == nil {
				at = end
				return
			}
			if tries > 3 {
				rt.Fatal("the consumer does not go on")
			}
			live.claim(projection.NoOffset)
			at = int(live.next)
		}
	}
	step := func(what string) { until(rapid.IntRange(at, len(topic)).Draw(rt, what)) }
	step("before")
	damage := rapid.SampledFrom(rowDamages[name]).Draw(rt, "damage")
	if _, err := pool.Exec(t.Context(), damage); err != nil {
		rt.Fatal(err)
	}
	step("damaged")
	s := openRowShadow(t, pool, kind, topic)
	report := s.compare()
	step("compared")
	unlocked := 1
	done, err := s.Swap(t.Context(), rebuild.SwapOptions{Topic: "events", Actor: "me", Remove: true}, func(ctx context.Context, positions []rebuild.TopicPosition) error {
		if unlocked--; unlocked >= 0 {
			step("while it is brought there")
		}
		return s.catchUp(ctx, positions)
	})
	if err != nil {
		rt.Fatal(err)
	}
	s.drop()
	step("swapped")
	until(len(topic))
	whole := newFeeder(t, clean, kind, partition)
	whole.feed(topic...)
	want := lines(t, clean, rowsSeen[name])
	if got := lines(t, pool, rowsSeen[name]); got != want {
		rt.Fatalf("damage %s\ngot  %s\nwant %s\nreport %+v, swapped %+v", damage, got, want, report, done)
	}
	live.claim(0)
	at = 0
	until(len(topic))
	if got := lines(t, pool, rowsSeen[name]); got != want {
		rt.Fatalf("read once more, after %s\ngot  %s\nwant %s\nreport %+v, swapped %+v", damage, got, want, report, done)
	}
}
