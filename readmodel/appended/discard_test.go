package appended_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/readmodeltest"
	"projector/readmodel/turnover"
)

func discarderOf(t *testing.T, pool *pgxpool.Pool) readmodel.Replayer {
	t.Helper()
	format := event.Always(readmodeltest.JSONFormat(t))
	kind := turnover.Definition()
	return kind.Replayer(readmodel.RepairConfig{Pool: pool, Formats: format, FirstVersion: 1, Decisions: readmodel.NewDecisions(pool, kind)})
}

// The function discard discards the dead letters of records and returns which of their events were
// applied.
func discard(t *testing.T, d readmodel.Replayer, records ...*readmodel.RepairRecord) (passed []bool) {
	t.Helper()
	var list []readmodel.Discard
	for _, r := range records {
		ev := &r.Decoded.Event
		a := r.Action
		a.Kind, a.Result, a.Projection, a.Reason = readmodel.ActionDiscard, readmodel.ResultDiscarded, turnover.Name, "known"
		list = append(list, readmodel.Discard{
			Subject: readmodel.Subject{AccountID: ev.AccountID, Version: ev.Version, EventID: ev.ID, Decoded: &r.Decoded}, Action: a,
		})
	}
	found, err := d.Discard(t.Context(), list)
	if err != nil {
		t.Error(err)
	}
	for _, f := range found {
		passed = append(passed, f.Passed)
	}
	return passed
}

// decidedFeeder returns a feeder of a consumer that leaves out discarded events.
func decidedFeeder(t *testing.T, pool *pgxpool.Pool) *readmodeltest.Feeder {
	t.Helper()
	kind := turnover.Definition()
	return feederOn(t, kind.Open(readmodel.RunConfig{
		Pool: pool, FirstVersion: 1, Observer: &counted{}, Decisions: readmodel.NewDecisions(pool, kind),
	})(partition))
}

const (
	discards = "SELECT string_agg(action || ' ' || result, ', ' ORDER BY id) FROM dlq_action"
	nothing  = ""
)

// A consumer reads a record again whose event became a dead letter before. It has claimed the
// partition and read the record before the discard, and writes after the discard. Then it must decide
// again, and leave the event out.
func TestADiscardAfterTheRecordWasRead(t *testing.T) {
	pool := openPool(t)
	f := decidedFeeder(t, pool)
	value := eventAs("1", "FundsCredited", "a", 1, noon, eur("4"))
	f.MustFold(value)
	if passed := discard(t, discarderOf(t, pool), readmodeltest.ReplayOf(f.Format, value)...); len(passed) != 1 || passed[0] {
		t.Errorf("applied: %v", passed)
	}
	if err := f.VerifyAndFlush(); err == nil {
		t.Error("a consumer has written a discarded event")
	}
	f.MustClaim(projection.NoOffset)
	f.Feed(value)
	same(t, "turnover", turnoverOf(t, pool), nothing)
	same(t, "outcomes", f.Outcomes(), "0 1 0 0")
}

// After a topic was created again, or has lost its end, another event has the offset of a discarded
// one. It must be applied.
func TestAnotherEventAtTheOffsetOfADiscardedOne(t *testing.T) {
	pool := openPool(t)
	f := decidedFeeder(t, pool)
	discarded := eventAs("1", "FundsCredited", "a", 1, noon, eur("4"))
	discard(t, discarderOf(t, pool), readmodeltest.ReplayOf(f.Format, discarded)...)
	f.MustClaim(projection.NoOffset)
	f.Feed(eventAs("2", "FundsCredited", "b", 1, noon, eur("5")))
	same(t, "turnover", turnoverOf(t, pool), "2026-01-01 EUR 5.00 0.00 1")
	same(t, "outcomes", f.Outcomes(), "1 0 0 0")
}

// The account of a discarded record may be unknown, because it could not be read. The record is left
// out when it is read again, also if it can be read now. A later record at its offset is applied.
func TestARecordAtTheOffsetOfADiscardedUnreadableOne(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		written time.Time
		want    string
	}{
		"the discarded one": {time.Now(), "0 1 0 0"},
		"a later one":       {time.Now().Add(time.Hour), "1 0 0 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := openPool(t)
			f := decidedFeeder(t, pool)
			discard(t, discarderOf(t, pool), readmodeltest.ReplayOf(f.Format, "{")...)
			f.MustClaim(projection.NoOffset)
			records := f.Records(eventAs("2", "FundsCredited", "b", 1, noon, eur("5")))
			records[0].Record.Timestamp = c.written.UnixMilli()
			if _, err := f.Fold(t.Context(), records, len(records)); err != nil {
				t.Fatal(err)
			}
			if err := f.VerifyAndFlush(); err != nil {
				t.Fatal(err)
			}
			same(t, "outcomes", f.Outcomes(), c.want)
		})
	}
}

// An event is replayed and discarded at the same time. If it is applied first, it is not discarded.
// If it is discarded first, it is not applied.
func TestADiscardAndAReplayOfOneDeadLetter(t *testing.T) {
	pool := openPool(t)
	f := newFeeder(t, pool, turnover.Definition(), partition)
	applied := 0
	for round := range 20 {
		d := discarderOf(t, pool)
		records := readmodeltest.ReplayOf(f.Format, eventAs(string(rune('a'+round)), "FundsCredited", "a", 1, noon, eur("4")))
		var (
			both   sync.WaitGroup
			passed []bool
			failed error
		)
		both.Go(func() { failed = d.Apply(t.Context(), records, nil) })
		both.Go(func() { passed = discard(t, d, readmodeltest.ReplayOf(f.Format, string(records[0].Record.Value))...) })
		both.Wait()
		want := "discard discarded"
		if len(passed) == 1 && passed[0] {
			want = "replay applied"
			applied++
		}
		if discarded := failed != nil && strings.Contains(failed.Error(), "was discarded meanwhile"); discarded != (want == "discard discarded") {
			t.Errorf("the replay: %v", failed)
		}
		same(t, "the trail", lines(t, pool, discards), want)
		readmodeltest.Exec(t, pool, "ALTER TABLE dlq_action DISABLE TRIGGER ALL; DELETE FROM dlq_action; ALTER TABLE dlq_action ENABLE TRIGGER ALL")
	}
	if applied == 0 {
		return
	}
	same(t, "turnover", turnoverOf(t, pool), fmt.Sprintf("2026-01-01 EUR %d.00 0.00 %d", 4*applied, applied))
}
