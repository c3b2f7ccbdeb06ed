package appended_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"projector/projection"
	"projector/readmodel"
	"projector/readmodel/statement"
	"projector/readmodel/turnover"
)

type delivered struct {
	account, version, id int
	poison               bool
}

func (d delivered) value(prefix string) string {
	amount := "1"
	if d.poison {
		amount = "none"
	}
	return eventAs(fmt.Sprintf("%s-e%d", prefix, d.id), "FundsCredited", fmt.Sprintf("%s-a%d", prefix, d.account), d.version, noon, eur(amount))
}

// model processes records one at a time by the rules of docs/events.md.
type model struct {
	stored         map[string]string // event ids by key
	processedUntil int
	counts         [4]int // indexed by projection.Outcome
	byVersion      bool
}

func (m *model) deliver(offset int, d delivered) {
	key, id := fmt.Sprint("e", d.id), fmt.Sprint("e", d.id)
	if m.byVersion {
		key = fmt.Sprint(d.account, "/", d.version)
	}
	stored, there := m.stored[key]
	switch {
	case there && stored != id && offset >= m.processedUntil, !there && d.poison:
		m.counts[projection.DeadLettered]++
	case there:
		m.counts[projection.Duplicate]++
	default:
		m.counts[projection.Applied]++
		m.stored[key] = id
	}
}

// TestBatchingChangesNothing shows that rows and outcomes are the same as if records were processed
// one at a time. This holds for flushes of random sizes, and also if the topic is read a second
// time.
func TestBatchingChangesNothing(t *testing.T) {
	t.Parallel()
	pool, run := openPool(t), 0
	for _, kind := range []readmodel.Definition{statement.Definition(), turnover.Definition()} {
		t.Run(kind.Name(), rapid.MakeCheck(func(rt *rapid.T) {
			run++
			batchingChangesNothing(t, rt, pool, kind, fmt.Sprint("r", run))
		}))
	}
}

func batchingChangesNothing(t *testing.T, rt *rapid.T, pool *pgxpool.Pool, kind readmodel.Definition, prefix string) {
	t.Helper()
	topic := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) delivered {
		return delivered{
			account: rapid.IntRange(0, 1).Draw(rt, "account"), version: rapid.IntRange(1, 4).Draw(rt, "version"),
			id: rapid.IntRange(0, 9).Draw(rt, "id"), poison: rapid.IntRange(0, 5).Draw(rt, "poison") == 0,
		}
	}), 1, 25).Draw(rt, "topic")
	f := newFeeder(t, pool, kind, readmodel.Partition{Group: prefix, Topic: "events"})
	m := &model{stored: map[string]string{}, byVersion: kind.Name() == statement.Name}
	for reads := rapid.IntRange(1, 2).Draw(rt, "reads"); reads > 0; reads-- {
		for next := 0; next < len(topic); {
			n := rapid.IntRange(1, len(topic)-next).Draw(rt, "batch")
			var values []string
			for i, d := range topic[next : next+n] {
				values = append(values, d.value(prefix))
				m.deliver(next+i, d)
			}
			f.Feed(values...)
			next += n
			m.processedUntil = max(m.processedUntil, next)
		}
		f.MustClaim(0)
	}
	want := fmt.Sprint(m.counts[projection.Applied], m.counts[projection.Duplicate], 0, m.counts[projection.DeadLettered])
	if got := f.Outcomes(); got != want {
		rt.Fatalf("applied, duplicate, ignored, dead-lettered: got %s, want %s", got, want)
	}
	found, err := find(t, pool, kind, prefix)
	if err != nil {
		rt.Fatal(err)
	}
	if len(found) != len(m.stored) {
		rt.Fatalf("took in %v, want %v", found, m.stored)
	}
	for key, id := range m.stored {
		if found[key] != id {
			rt.Fatalf("at %s: got %s, want %s", key, found[key], id)
		}
	}
}

// find returns the event ids in the rows of a run, by the keys of the model.
func find(t *testing.T, pool *pgxpool.Pool, kind readmodel.Definition, prefix string) (map[string]string, error) {
	t.Helper()
	query := `SELECT right(account_id, 1) || '/' || version, split_part(event_id, '-', 2) FROM account_statement WHERE account_id LIKE $1 || '-%'`
	if kind.Name() == turnover.Name {
		query = `SELECT split_part(message_id, '-', 2), split_part(message_id, '-', 2) FROM inbox WHERE message_id LIKE $1 || '-%'`
	}
	rows, err := pool.Query(t.Context(), query, prefix)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	var key, id string
	_, err = pgx.ForEachRow(rows, []any{&key, &id}, func() error { found[key] = id; return nil })
	return found, err
}
