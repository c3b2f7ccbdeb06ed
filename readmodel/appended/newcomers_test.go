package appended_test

import (
	"errors"
	"fmt"
	"testing"

	"projector/projection"
	"projector/readmodel"
	"projector/readmodel/statement"
	"projector/readmodel/turnover"
)

// TestNewEntriesAreCopied shows that after a write of new entries only, the next entries are
// written by COPY. The result is the same as with INSERT. If an entry was delivered before, the
// batch is decided again.
func TestNewEntriesAreCopied(t *testing.T) {
	events := func(from, to int) (values []string) {
		for i := from; i < to; i++ {
			kind, data := "FundsCredited", eur(fmt.Sprintf("%d.25", i+1))
			switch i % 5 {
			case 1:
				kind, data = "FundsDebited", `{"amount":"7","currency":"JPY"}`
			case 2:
				kind, data = "AccountClosed", "{}"
			case 3:
				kind, data = "AccountOpened", `{"currency":"KWD"}`
			}
			values = append(values, eventAs(fmt.Sprintf("e%05d", i), kind, "a", i+1, noon, data))
		}
		return values
	}
	for _, p := range []struct {
		of   readmodel.Definition
		rows string
	}{
		{statement.Definition(), `SELECT concat_ws('|', account_id, version, event_id, event_type, amount, currency, occurred_at,
			correlation_id, source_partition) FROM account_statement ORDER BY version`},
		{turnover.Definition(), `SELECT concat_ws('|', day, currency, credited, debited, events, (SELECT count(*) FROM inbox)) FROM daily_turnover ORDER BY currency`},
	} {
		t.Run(p.of.Name(), func(t *testing.T) {
			t.Parallel()
			const n = 3 * readmodel.CopyLeast
			inserted, copied := openPool(t), openPool(t)
			all := newFeeder(t, inserted, p.of, partition)
			all.Feed(events(0, n)...)
			f := newFeeder(t, copied, p.of, partition)
			f.Feed(events(0, readmodel.CopyLeast)...)
			f.Feed(events(readmodel.CopyLeast, n)...)
			same(t, "rows", lines(t, copied, p.rows), lines(t, inserted, p.rows))

			if p.of.Name() == statement.Name {
				same(t, "misplaced", lines(t, copied, "SELECT count(*) FROM account_statement WHERE source_offset IS DISTINCT FROM version - 1"), "0")
			}
			again := events(n-1, n+readmodel.CopyLeast) // the first of them was delivered before
			f.MustFold(again...)
			if err := f.VerifyAndFlush(); !errors.Is(err, projection.ErrStale) {
				t.Fatalf("error %v, want ErrStale", err)
			}
			f.MustClaim(projection.NoOffset)
			f.Feed(again...)
			all.Feed(events(n, n+readmodel.CopyLeast)...)
			same(t, "rows", lines(t, copied, p.rows), lines(t, inserted, p.rows))
		})
	}
}
