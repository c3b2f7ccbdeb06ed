package own_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/projection/event"
	"projector/projection/file"
	"projector/readmodel"
	"projector/readmodel/accountdb"
	"projector/readmodel/own"
	"projector/readmodel/repair"
)

func replayer(pool *pgxpool.Pool, p file.Projection) readmodel.Replayer {
	return own.Definition(p).Replayer(readmodel.RepairConfig{Pool: pool, Formats: event.Always(formatOf(p)), FirstVersion: 1})
}

// The function record returns the record of a dead letter as a replay reads it.
func record(p file.Projection, offset int64, value string) *readmodel.RepairRecord {
	r := &readmodel.RepairRecord{
		DecodedRecord: projection.DecodedRecord{Record: projection.Record{
			Topic: "events", Offset: offset, Message: event.Message{Value: []byte(value)},
		}},
		FailedAt: time.Now(),
		Action:   readmodel.Action{Kind: readmodel.ActionReplay, Actor: "me", Topic: "events", Offset: offset},
	}
	formatOf(p).Decode(r.Record.Message, &r.Decoded)
	return r
}

func TestRepairsGiveEventsOnce(t *testing.T) {
	t.Parallel()
	for mode, want := range map[file.Mode][]string{
		file.Ordered: {"a 15 4", "b 9 3"},
		file.Once:    {"a 15 4", "b 9 3"},
	} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			pool := stage(t)
			p := parse(t, fmt.Sprintf(loyalty, mode))
			f := feed(t, pool, p)
			f.consume([]string{points("a", 1, 5), points("a", 2, "x"), points("a", 3, 4), points("a", 4, 3), points("b", 2, 1), points("b", 3, 1)})

			repairer := replayer(pool, p)
			records := []*readmodel.RepairRecord{
				record(p, 1, strings.Replace(points("a", 2, 3), `"3"`, `3`, 1)), // the corrected event
				record(p, 2, points("a", 3, 4)), record(p, 9, points("b", 1, 7)),
			}
			if err := repairer.Plan(t.Context(), records); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second Apply is a repetition
				if err := repairer.Apply(t.Context(), records, nil); err != nil {
					t.Fatal(err)
				}
			}
			same(t, "rows", rows(t, pool, "SELECT account_id, points, events FROM loyalty ORDER BY account_id"), want)
			same(t, "trail", rows(t, pool, "SELECT DISTINCT action, split_part(result, ' ', 2) i, split_part(result, ' ', 3) p FROM dlq_action"), []string{"replay in loyalty_points"})

			f.claim() // the consumer continues after the replay
			f.consume(append(make([]string, f.next), points("a", 5, 1), points("b", 3, 1)))
			same(t, "rows", rows(t, pool, "SELECT account_id, points, events FROM loyalty ORDER BY account_id"), []string{"a 16 5", "b 9 3"})
			same(t, "events seen twice", rows(t, pool, "SELECT event_id FROM seen GROUP BY event_id HAVING count(*) > 1"), nil)
			same(t, "balances", rows(t, pool, "SELECT account_id FROM account_balance UNION ALL SELECT account_id FROM parked_event"), nil)
		})
	}
}

func TestAVersionIsSkipped(t *testing.T) {
	t.Parallel()
	pool := stage(t)
	p := parse(t, fmt.Sprintf(loyalty, file.Ordered))
	f := feed(t, pool, p)
	f.consume([]string{points("a", 2, 1), points("a", 3, 2), points("b", 1, 1)})

	view, err := accountdb.ShowAccount(t.Context(), pool, p.Name, "a")
	if err != nil || view.Balance != nil || view.Hold == nil || view.Hold.Expected != 1 || len(view.Parked) != 2 {
		t.Fatalf("account a: %+v %v", view, err)
	}
	gaps := 0
	for gap, err := range accountdb.Gaps(t.Context(), pool, p.Name) {
		if gaps++; err != nil || gap.AccountID != "a" || gap.Expected != 1 || gap.Waiting != 2 {
			t.Errorf("gap: %+v %v", gap, err)
		}
	}
	parked, err := readmodel.CountParked(t.Context(), pool, p.Name)
	if err != nil || gaps != 1 || parked.Accounts != 1 || parked.Events != 2 {
		t.Errorf("%d gaps, parked: %+v %v", gaps, parked, err)
	}
	if _, err := accountdb.ShowAccount(t.Context(), pool, readmodel.BalanceName, "a"); err == nil {
		t.Error("the account is one of the balances")
	}
	skipper := replayer(pool, p).(*repair.Repair)
	done, err := skipper.Skip(t.Context(), repair.Skip{AccountID: "a", Version: 1, Actor: "me", Reason: "lost"})
	if err != nil || done.Healed != 2 {
		t.Fatalf("skip: %+v %v", done, err)
	}
	same(t, "rows", rows(t, pool, "SELECT account_id, points, versions FROM loyalty ORDER BY account_id"), []string{"a 3 2 3", "b 1 1"})
	if view, err = accountdb.ShowAccount(t.Context(), pool, p.Name, "a"); err != nil || view.Hold != nil || view.Balance == nil || view.Balance.Version != 3 {
		t.Errorf("account a: %+v %v", view, err)
	}
	same(t, "what balances and statements pass over", rows(t, pool, "SELECT account_id FROM account_skipped"), nil)
}
