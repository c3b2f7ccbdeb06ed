package balance_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/accounts"
	"projector/readmodel/balance"
)

// TestCopyWritesWhatInsertWrites compares the two ways to write new accounts, for the balances and
// for a custom projection.
func TestCopyWritesWhatInsertWrites(t *testing.T) {
	t.Parallel()
	pool := openPool(t)
	t.Run("balances", func(t *testing.T) {
		copyWritesWhatInsertWrites(t, pool, partition, `SELECT concat_ws('|', substr(account_id, 2), coalesce(currency, '-'), balance, version, status,
			coalesce(last_event_id, '-'), coalesce(last_event_at::text, '-')) FROM account_balance WHERE account_id LIKE $1 || '%' ORDER BY account_id`)
	})
	t.Run("custom", func(t *testing.T) {
		custom := partition
		custom.Projection = "loyalty's"
		copyWritesWhatInsertWrites(t, pool, custom, `SELECT concat_ws('|', projection, substr(account_id, 2), version,
			coalesce(last_event_id, '-'), coalesce(last_event_at::text, '-')) FROM projection_account WHERE account_id LIKE $1 || '%' ORDER BY account_id`)
	})
}

func copyWritesWhatInsertWrites(t *testing.T, pool *pgxpool.Pool, partition readmodel.Partition, all string) {
	t.Helper()
	pos, err := readmodel.ClaimPosition(t.Context(), pool, partition, projection.Claim{Owner: "me", TopicID: "id", Committed: projection.NoOffset})
	if err != nil {
		t.Fatal(err)
	}
	var states []projection.Account
	for _, code := range []string{"JPY", "EUR", "KWD", "CLF"} { // with 0, 2, 3 and 4 decimals
		for _, minor := range []int64{0, 1, -1, 99, -100, 9_999, 10_000, -10_001, 100_000_000, 1_234_567_890_123, math.MaxInt64, math.MinInt64} {
			for _, at := range []int64{projection.NoTime, -62_135_596_800_000_000, -1, 1_767_225_600_123_456, 253_402_300_799_999_999} {
				a := projection.Account{Balance: minor, LastEventAt: at, Closed: at < 0, LastEventID: "e\t\\N"}
				a.Currency, _ = event.CurrencyByCode(code)
				states = append(states, a)
			}
		}
	}
	states = append(states, projection.Account{LastEventAt: projection.NoTime})
	if len(states) <= readmodel.CopyLeast {
		states = slices.Repeat(states, 2)
	}
	written := map[string][]string{}
	for _, prefix := range []string{"i", "c"} { // i: inserted, c: copied
		c := &accounts.Changes{}
		for i, a := range states {
			a.Version = int64(i + 1)
			c.Rows = append(c.Rows, accounts.Row{AccountID: fmt.Sprintf("%s%04d", prefix, i), Account: a})
		}
		moved := pos.Moved(projection.NextOffset{Offset: pos.Next + 1})
		if err := balance.Write(t.Context(), pool, partition, pos, moved, c, prefix == "c"); err != nil {
			t.Fatal(err)
		}
		pos = moved
		rows, err := pool.Query(t.Context(), all, prefix)
		if err != nil {
			t.Fatal(err)
		}
		if written[prefix], err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(written["c"], written["i"]) {
		t.Errorf("copied\n%q\ninserted\n%q", written["c"], written["i"])
	}
	if n := len(written["c"]); n != len(states) {
		t.Errorf("%d rows, want %d", n, len(states))
	}
}
