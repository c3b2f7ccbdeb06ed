package readmodel_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"projector/projection"
	"projector/readmodel"
	"projector/readmodel/balance"
	"projector/readmodel/rebuild"
)

// reader reads one partition of a topic that is a list of values.
type reader struct {
	*worker
	number  int32
	topic   []string
	letters []string // the dead letters: event ids and classes
}

func newReader(t *testing.T, pool *pgxpool.Pool, number int32, topic []string, group string) *reader {
	t.Helper()
	r := &reader{worker: newWorker(t, pool, readmodel.Partition{Group: group, Topic: "events", Number: number}), number: number, topic: topic}
	r.claim("me", projection.NoOffset)
	return r
}

// to reads as far as an offset and writes, as a consumer does: when it has to, it claims
// anew and goes on from where it is durable.
func (r *reader) to(offset int64) {
	r.t.Helper()
	for tries := 0; r.next < offset; tries++ {
		err := r.try(offset)
		if errors.Is(err, projection.ErrFenced) || errors.Is(err, projection.ErrStale) {
			r.claim("me", projection.NoOffset)
		} else if err != nil {
			r.t.Fatal(err)
		}
		if tries > 10 {
			r.t.Fatalf("partition %d does not get beyond offset %d: %v", r.number, r.next, err)
		}
	}
}

func (r *reader) try(offset int64) error {
	records := r.records(r.topic[r.next:offset]...)
	for i := range records {
		records[i].Record.Partition = r.number
	}
	for len(records) > 0 {
		n, err := r.Fold(r.t.Context(), records, 1000)
		if err != nil {
			return err
		}
		if records = records[n:]; n == 0 {
			break
		}
	}
	if err := r.write(); err != nil {
		return err
	}
	for more := true; more; {
		var err error
		if more, err = r.heal(1000); err != nil {
			return err
		}
		if r.Pending().Events > 0 {
			if err := r.write(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *reader) write() error {
	changes, err := r.flush()
	for i := range changes.DeadLetters {
		r.letters = append(r.letters, changes.DeadLetters[i].EventID+" "+string(changes.DeadLetters[i].Class))
	}
	return err
}

// state is all that readers see.
func state(t *testing.T, pool *pgxpool.Pool) map[string]string {
	t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(lines(t, pool, `SELECT concat_ws(' ', account_id, currency, balance, version, status, last_event_id, stale, waiting_for_version)
		FROM account_balance_current ORDER BY account_id`)) {
		account, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[account] = rest
	}
	return all
}

func emptied(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), "TRUNCATE account_balance, parked_event, park_overflow, projector_position, projector_source"); err != nil {
		t.Fatal(err)
	}
}

// drawValue draws an event of one of some accounts: with holes, redeliveries, conflicts
// and poison, and in any order.
func drawValue(rt *rapid.T, accounts []string) string {
	account, version := rapid.SampledFrom(accounts).Draw(rt, "account"), rapid.IntRange(1, 6).Draw(rt, "version")
	switch rapid.IntRange(0, 9).Draw(rt, "what") {
	case 0:
		return credit(account, version, "none", "EUR")
	case 1:
		return credit(account, version, "1", "USD")
	case 2:
		return strings.Replace(credit(account, version, "7", "EUR"), `"eventId":"`, `"eventId":"other-`, 1)
	default:
		return credit(account, version, fmt.Sprint(version), "EUR")
	}
}

// fewerChecks is for a property that takes a second to check.
func fewerChecks(t *testing.T) {
	t.Helper()
	const usual, fewer = "100", "25"
	checks := flag.Lookup("rapid.checks")
	if checks.Value.String() != usual {
		return
	}
	if err := checks.Value.Set(fewer); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = checks.Value.Set(usual) })
}

// TestASwapBesideConsumers: whatever is wrong, and wherever consumers are when the shadow
// is brought to them and when they are locked, each account that was not left alone is in
// the end what it would have been if nothing had ever been wrong.
func TestASwapBesideConsumers(t *testing.T) {
	pool, clean := openPool(t), openPool(t)
	fewerChecks(t)
	rapid.Check(t, func(rt *rapid.T) {
		emptied(t, pool)
		emptied(t, clean)
		swapBesideConsumers(t, rt, pool, clean)
	})
}

func swapBesideConsumers(t *testing.T, rt *rapid.T, pool, clean *pgxpool.Pool) {
	t.Helper()
	topic := [][]string{nil, nil}
	for number, accounts := range [][]string{{"a", "b", "c", "d"}, {"e", "f"}} {
		for range rapid.IntRange(1, 30).Draw(rt, "records") {
			topic[number] = append(topic[number], drawValue(rt, accounts))
		}
	}
	readers := func(pool *pgxpool.Pool, group string) (both []*reader) {
		for number, values := range topic {
			both = append(both, newReader(t, pool, int32(number), values, group))
		}
		return both
	}
	live := readers(pool, "g")
	move := func(label string) {
		for _, r := range live {
			r.to(r.next + rapid.Int64Range(0, int64(len(r.topic))-r.next).Draw(rt, label))
		}
	}
	move("before the damage")
	for range rapid.IntRange(1, 8).Draw(rt, "damages") {
		damage(t, rt, pool)
	}
	live = readers(pool, "g")
	move("after the damage")

	shadow, err := rebuild.OpenShadow(t.Context(), pool, balance.Definition{}, 100, 0)
	if err != nil {
		rt.Fatal(err)
	}
	defer func() {
		if err := shadow.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	rebuilt := readers(shadow.Pool, "rebuild")
	catchUps, locked := 0, false
	catchUp := func(_ context.Context, positions []rebuild.TopicPosition) error {
		catchUps++
		locked = catchUps > 2 // one for the comparison, and one before the positions are locked
		for _, p := range positions {
			rebuilt[p.Partition].to(p.Next)
		}
		if !locked {
			move("while it is brought there")
		}
		return nil
	}
	report, err := shadow.Compare(t.Context(), rebuild.CompareOptions{Topic: "events", List: 10}, catchUp)
	if err != nil {
		rt.Fatal(err)
	}
	swapped, err := shadow.Swap(t.Context(), rebuild.SwapOptions{
		Topic: "events", Actor: "me", Remove: true,
	}, catchUp)
	shadow.Moved(&report)
	if err != nil {
		rt.Fatal(err)
	}
	for _, r := range append(live, readers(clean, "clean")...) {
		r.to(int64(len(r.topic)))
	}
	got, want := state(t, pool), state(t, clean)
	var left []string
	for _, d := range report.Differences {
		if slices.Contains([]rebuild.Kind{rebuild.Ahead, rebuild.Moved}, d.Kind) {
			left = append(left, d.ID)
		}
	}
	for _, account := range []string{"a", "b", "c", "d", "e", "f", "phantom"} {
		if got[account] != want[account] && !slices.Contains(left, account) {
			rt.Fatalf("account %s is %q, want %q; %+v, %+v, topic %q", account, got[account], want[account], report, swapped, topic)
		}
	}
}

// damage makes something wrong behind the consumers' backs.
func damage(t *testing.T, rt *rapid.T, pool *pgxpool.Pool) {
	t.Helper()
	account := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(rt, "damaged")
	statement := rapid.SampledFrom([]string{
		`UPDATE account_balance SET balance = balance + 100 WHERE account_id = $1`,
		`DELETE FROM account_balance WHERE account_id = $1`,
		`DELETE FROM parked_event WHERE account_id = $1`,
		`WITH gone AS (DELETE FROM account_balance WHERE account_id = $1), gone_too AS (DELETE FROM parked_event WHERE account_id = $1) SELECT`,
		`INSERT INTO account_balance (account_id, currency, balance, version) SELECT 'phantom', 'EUR', 1.00, length($1) ON CONFLICT DO NOTHING`,
	}).Draw(rt, "damage")
	if _, err := pool.Exec(t.Context(), statement, account); err != nil {
		t.Fatal(err)
	}
}
