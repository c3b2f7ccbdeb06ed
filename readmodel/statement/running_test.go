package statement_test

import (
	"fmt"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"projector/projection"
	"projector/readmodel/statement"
)

// entry is an entry of an account, in cents. 0 means an event without money.
type entry struct {
	version, cents int64
	currency       string
}

// TestRunningBalance shows that the running balance is the sum of the entries so far. The balance
// is known if all earlier versions have an entry or were skipped, and if all amounts have the same
// currency.
func TestRunningBalance(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		first := rapid.Int64Range(0, 2).Draw(rt, "first")
		versions := rapid.SliceOfDistinct(rapid.Int64Range(first, 12), rapid.ID[int64]).Draw(rt, "versions")
		skipped := rapid.SliceOfDistinct(rapid.Int64Range(first, 14), rapid.ID[int64]).Draw(rt, "skipped")
		slices.Sort(versions)
		slices.Sort(skipped)
		r := statement.NewRunning(first-1, skipped)
		var added []entry
		for i, v := range versions {
			e := entry{version: v, cents: rapid.Int64Range(-500, 500).Draw(rt, "cents"), currency: rapid.SampledFrom([]string{"EUR", "EUR", "EUR", "USD"}).Draw(rt, "currency")}
			var amount *string
			if e.cents != 0 {
				amount = new(big.NewRat(e.cents, 100).FloatString(2))
			}
			r.Add(v, amount, e.currency)
			if !slices.Contains(skipped, v) {
				added = append(added, e)
			}
			want, sum, missing := "", int64(0), int64(0)
			for u := first; u < v; u++ {
				if !slices.Contains(versions[:i], u) && !slices.Contains(skipped, u) {
					missing++
				}
			}
			known := missing == 0
			for _, a := range added {
				known = known && (a.cents == 0 || a.currency == added[0].currency)
				sum += a.cents
			}
			if known {
				if want = "0"; len(added) > 0 {
					want = big.NewRat(sum, 100).FloatString(2)
				}
			}
			got, is := r.Balance()
			if got != want || is != known || r.Missing != missing {
				rt.Fatalf("first %d, skipped %v, entries %+v: at version %d: %q (%v), %d missing; want %q (%v), %d missing",
					first, skipped, added, v, got, is, r.Missing, want, known, missing)
			}
		}
	})
}

func TestRunningBalanceIsExact(t *testing.T) {
	for _, c := range []struct {
		currency string
		amounts  []string
		want     string
	}{
		{"JPY", []string{"5", "-7"}, "-2"},
		{"KWD", nil, "0.000"},
		{"EUR", []string{"92233720368547758.07", "92233720368547758.07"}, "184467440737095516.14"},
		{"EUR", []string{"0.05", "-0.10"}, "-0.05"},
		{"EUR", []string{"0.05", "-0.05"}, "0.00"},
		{"EUR", []string{"1", "0.005"}, "1.005"}, // an amount that somebody wrote by SQL
		{"EUR", []string{"1", "NaN", "1"}, ""},
		{"EUR", []string{"Infinity"}, ""},
	} {
		t.Run(fmt.Sprint(c.currency, c.amounts), func(t *testing.T) {
			r := statement.NewRunning(0, nil)
			r.Add(1, nil, c.currency)
			for i := range c.amounts {
				r.Add(int64(i+2), &c.amounts[i], c.currency)
			}
			if got, known := r.Balance(); got != c.want || known != (c.want != "") {
				t.Errorf("%q (%v), want %q", got, known, c.want)
			}
			if c.want != "" && (!r.Is(c.want+"0", c.currency) && !r.Is(c.want+".0", c.currency) || r.Is(c.want, "XAF") || r.Is("1"+c.want, c.currency)) {
				t.Errorf("%s is not distinguished from others", c.want)
			}
		})
	}
	far := statement.NewRunning(0, []int64{3, 1 << 40, 1 << 60})
	far.Add(1<<62, nil, "EUR") // the number of steps depends on the skipped versions only
	if far.Missing != 1<<62-1-3 || far.First != (statement.Span{From: 1, To: 2}) {
		t.Errorf("%d missing, first %v", far.Missing, far.First)
	}
}

// The highest version that an event can have may have an entry, be missing or be skipped.
func TestRunningBalanceAtTheHighestVersion(t *testing.T) {
	const last = projection.LastVersion
	entry := statement.NewRunning(last-1, nil)
	entry.Add(last, nil, "EUR")
	missing := statement.NewRunning(-1, nil)
	missing.Add(last, nil, "EUR")
	skipped := statement.NewRunning(last-2, []int64{last - 1, last})
	skipped.PassSkipped()
	nothing := statement.NewRunning(last, nil)
	nothing.PassSkipped()
	for name, c := range map[string]struct {
		of      *statement.Running
		missing int64
	}{"entry": {entry, 0}, "all before it missing": {missing, last}, "skipped": {skipped, 0}, "nothing after it": {nothing, 0}} {
		if c.of.Through() != last || c.of.Missing != c.missing {
			t.Errorf("%s: through %d, %d missing", name, c.of.Through(), c.of.Missing)
		}
	}
}
