package balance_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/readmodel"
	"projector/readmodel/readmodeltest"
)

// newcomers returns the first events of n accounts.
func newcomers(prefix string, n int) []string {
	values := make([]string, n)
	for i := range values {
		values[i] = credit(fmt.Sprintf("%s-%04d", prefix, i), 1, "1", "EUR")
	}
	return values
}

// trusting returns a worker that has seen only new accounts. The worker assumes that the next
// accounts are new too.
func trusting(t *testing.T) (*worker, *pgxpool.Pool) {
	t.Helper()
	pool, w := startWorker(t)
	w.MustFold(newcomers("a", 1500)...)
	w.MustFlush()
	return w, pool
}

// TestANewcomerThatHasARow shows that the row of an account that was assumed to be new is not
// overwritten. The account is looked up the next time.
func TestANewcomerThatHasARow(t *testing.T) {
	for _, fresh := range []int{0, 2 * readmodel.CopyLeast} { // by INSERT and by COPY
		w, pool := trusting(t)
		if err := newRepair(t, pool, 0).Apply(t.Context(), replayOf(w.Format, credit("known", 1, "5", "EUR")), nil); err != nil {
			t.Fatal(err)
		}
		values := append(newcomers("b", fresh), credit("known", 1, "5", "EUR"), credit("known", 2, "2", "EUR"))
		w.MustFold(values...)
		if _, err := w.VerifyAndFlush(); !errors.Is(err, projection.ErrStale) {
			t.Fatalf("%d new accounts beside it: error %v, want ErrStale", fresh, err)
		}
		expect(t, current(t, pool, "known"), "EUR 5.00 1 open known-1 false -")
		w.MustClaim("me", projection.NoOffset)
		w.MustFold(values...)
		w.MustFlush()
		expect(t, current(t, pool, "known"), "EUR 7.00 2 open known-2 false -")
		if n := readmodeltest.Count(t, pool, "SELECT count(*) FROM account_balance"); n != 1500+fresh+1 {
			t.Errorf("%d accounts", n)
		}
	}
}

// In TestANewcomerOfWhichEventsAreParked, an account without a row has parked events that wait for
// its first event. These events must be applied, and none of them may be dead-lettered.
func TestANewcomerOfWhichEventsAreParked(t *testing.T) {
	t.Parallel()
	for name, values := range map[string][]string{
		"at the write":          {credit("gap", 1, "1", "EUR")},
		"before a dead letter":  {credit("gap", 1, "1", "EUR"), credit("gap", 3, "4", "EUR")},
		"among many new others": append(newcomers("b", 2*readmodel.CopyLeast), credit("gap", 1, "1", "EUR")),
	} {
		t.Run(name, func(t *testing.T) {
			w, pool := trusting(t)
			other := newWorker(t, pool, inPartition(7))
			other.MustClaim("me", projection.NoOffset)
			other.MustFold(credit("gap", 2, "2", "EUR"))
			other.MustFlush()
			w.MustFold(values...)
			if _, err := w.VerifyAndFlush(); !errors.Is(err, projection.ErrStale) {
				t.Fatalf("error %v, want ErrStale", err)
			}
			w.MustClaim("me", projection.NoOffset)
			w.MustFold(values...)
			flushed := w.MustFlush()
			if len(flushed.DeadLetters) != 0 {
				t.Errorf("dead letters: %+v", flushed.DeadLetters)
			}
			if got := current(t, pool, "gap"); !strings.HasSuffix(got, "false -") {
				t.Errorf("the account is %s", got)
			}
		})
	}
}
