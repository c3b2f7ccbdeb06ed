package ledger_test

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"projector/internal/ledger"
)

func TestCanonical(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "-0": "0", "-0.00": "0", "10.50": "10.5", "0010.5": "10.5", "-7": "-7", "1000": "1000", "0.010": "0.01",
		"123456789012345678901234567890.1": "123456789012345678901234567890.1",
	} {
		if got, ok := ledger.Canonical(text); !ok || got != want {
			t.Errorf("%q: got %q, %v; want %q", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", "-", ".", "1.", ".5", "+1", "1e3", "1,5", " 1", "1 ", "NaN", "--1", "0x1", "$1", "1_0", strings.Repeat("1", 101), "٣",
	} {
		if got, ok := ledger.Canonical(text); ok {
			t.Errorf("%q is no decimal number, but became %q", text, got)
		}
	}
}

// Two texts have the same canonical form if and only if they are the same number.
func TestCanonicalIsEqualityOfNumbers(t *testing.T) {
	number := rapid.StringMatching(`-?0{0,2}[0-9]{1,4}(\.[0-9]{1,3})?`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := number.Draw(t, "a"), number.Draw(t, "b")
		x, okX := ledger.Canonical(a)
		y, okY := ledger.Canonical(b)
		p, _ := new(big.Rat).SetString(a)
		q, _ := new(big.Rat).SetString(b)
		if !okX || !okY || (x == y) != (p.Cmp(q) == 0) {
			t.Fatalf("%q and %q became %q and %q", a, b, x, y)
		}
	})
}

func read(text string) (entries []ledger.Entry, err error) {
	for e, err := range ledger.ReadCSV(strings.NewReader(text), ledger.Balances) {
		if err != nil {
			return entries, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func TestReadCSV(t *testing.T) {
	entries, err := read("\ufeffbalance,note,account_id,version\r\n1.50,\"a, b\nc\",\"acc \"\"1\"\"\",7\r\n-2,,acc-2,0\n")
	want := []ledger.Entry{{AccountID: `acc "1"`, Version: 7, Balance: "1.5", Place: 2}, {AccountID: "acc-2", Version: 0, Balance: "-2", Place: 4}}
	if err != nil || !slices.Equal(entries, want) {
		t.Errorf("got %v, %v", entries, err)
	}
	const head = "account_id,version,balance\n"
	for text, want := range map[string]string{
		"":                                         "empty",
		"account_id,version\n":                     "balance",
		"account_id,version,balance,version\n":     "two columns",
		head + "a,1,1\nb,x,1\n":                    "line 3, column 3: version",
		head + "a,1,1\nb,1,secret\n":               "line 3, column 5: balance",
		head + ",1,1\n":                            "line 2, column 1: account_id",
		head + "a,-1,1\n":                          "version",
		head + "a,1.0,1\n":                         "version",
		head + "a,9223372036854775808,1\n":         "version",
		head + "a,1,\n":                            "balance",
		head + "a,1\n":                             "line 2",
		head + "a,1,1,1\n":                         "line 2",
		head + "a,\"1,1\n":                         "line 2",
		head + "a\x00,1,1\n":                       "account_id",
		head + "a\xff,1,1\n":                       "account_id",
		head + strings.Repeat("a", 201) + ",1,1\n": "account_id",
	} {
		_, err := read(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", text, err, want)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("an error repeats a balance: %v", err)
		}
	}
}

// A quote that is never closed makes the rest of the file one line, and a device may never end.
func TestALedgerWithoutEndIsRefused(t *testing.T) {
	for what, device := range map[string]io.Reader{
		"line 1: ": endless("0"),
		"line 2: ": io.MultiReader(strings.NewReader("account_id,version,balance\n\""), endless("a\n")),
		"line 4: ": io.MultiReader(strings.NewReader("account_id,version,balance\n\"a\nb\",1,1\n"), endless("0")),
	} {
		var last error
		for _, err := range ledger.ReadCSV(device, ledger.Balances) {
			last = err
		}
		if last == nil || !strings.Contains(last.Error(), what+"is longer than 16 MiB") {
			t.Errorf("got %v, want an error in %s", last, what)
		}
	}
}

// endless is a reader that repeats its text.
type endless string

func (e endless) Read(p []byte) (n int, err error) {
	for n+len(e) <= len(p) {
		n += copy(p[n:], e)
	}
	return n, nil
}

func entryOf(i int) ledger.Entry {
	return ledger.Entry{AccountID: fmt.Sprintf("acc-%d", i), Version: int64(i), Balance: fmt.Sprint(i), Place: int64(i + 1)}
}

// The table returns the added entries in the byte order of the account ids.
func TestTable(t *testing.T) {
	const n = 100_000 // fills several pages
	table := ledger.NewTable(64 << 20)
	for _, i := range rand.Perm(n) {
		if e := entryOf(i); !table.Add(&e) {
			t.Fatalf("full after %d entries", table.Len())
		}
	}
	if err := table.Sort(); err != nil || table.Len() != n {
		t.Fatal(table.Len(), err)
	}
	for range 2 { // the second round shows that the entries can be read again
		seen, last := 0, ""
		for e := range table.Entries() {
			if e.AccountID <= last || e != entryOf(int(e.Version)) {
				t.Fatalf("%+v after %q", e, last)
			}
			seen, last = seen+1, e.AccountID
		}
		if seen != n {
			t.Errorf("%d of %d entries", seen, n)
		}
	}
}

// The table accepts entries with the longest texts that Parse allows.
func TestTableOfLongEntries(t *testing.T) {
	table, long := ledger.NewTable(64<<20), strings.Repeat("x", 200)
	for i := range 5000 {
		e := entryOf(i)
		e.AccountID, e.Balance, e.Currency, e.Status, e.LastEventID = fmt.Sprintf("%0200d", i), strings.Repeat("9", 100), long, long, long
		if !table.Add(&e) {
			t.Fatal("full")
		}
	}
	if err := table.Sort(); err != nil {
		t.Fatal(err)
	}
	for e := range table.Entries() {
		if e.AccountID != fmt.Sprintf("%0200d", e.Version) || e.LastEventID != long || len(e.Balance) != 100 {
			t.Fatalf("%+v", e)
		}
	}
}

// A full table stores no more entries. The test allows between 20 and 80 bytes for each entry.
func TestTableIsFull(t *testing.T) {
	const limit = 2 << 20
	table := ledger.NewTable(limit)
	for i := 0; ; i++ {
		e := entryOf(i)
		if !table.Add(&e) {
			break
		}
	}
	if n := table.Len(); n < limit/40/2 || n > limit/20 {
		t.Errorf("%d entries in %d bytes", n, limit)
	}
	if err := table.Sort(); err != nil || len(slices.Collect(table.Entries())) != int(table.Len()) {
		t.Error(err)
	}
}

// Two entries of one account are detected in a table, even if they are far apart, and in a stream.
func TestDuplicates(t *testing.T) {
	const n = 100_000
	table := ledger.NewTable(64 << 20)
	for i := range n {
		e := entryOf(i)
		table.Add(&e)
	}
	again := entryOf(7)
	again.Place = n + 1
	table.Add(&again)
	stream := ledger.Ascending(func(yield func(ledger.Entry, error) bool) {
		_ = yield(entryOf(1), nil) && yield(entryOf(7), nil) && yield(again, nil) && yield(entryOf(8), nil)
	})
	var streamed error
	for _, err := range stream {
		streamed = err
	}
	for _, err := range []error{table.Sort(), streamed} {
		var duplicate *ledger.DuplicateError
		if !errors.As(err, &duplicate) || *duplicate != (ledger.DuplicateError{AccountID: "acc-7", First: 8, Second: n + 1}) {
			t.Errorf("got %v", err)
		}
	}
}

// A stream that is not in byte order gives an error.
func TestAscendingRefusesAWrongOrder(t *testing.T) {
	var seen []string
	var failed error
	for e, err := range ledger.Ascending(func(yield func(ledger.Entry, error) bool) {
		_ = yield(ledger.Entry{AccountID: "a", Place: 1}, nil) && yield(ledger.Entry{AccountID: "B", Place: 2}, nil) && yield(ledger.Entry{AccountID: "c", Place: 3}, nil)
	}) {
		if failed = err; err == nil {
			seen = append(seen, e.AccountID)
		}
	}
	if failed == nil || !slices.Equal(seen, []string{"a"}) {
		t.Errorf("%v, %v", seen, failed)
	}
}

// A Comparison must have the same result as a simple comparison of two maps.
func TestComparisonAgainstMaps(t *testing.T) {
	ids := rapid.SampledFrom([]string{"a", "B", "c", "é", "z1", "z10", "z2"})
	rapid.Check(t, func(t *rapid.T) {
		entries := rapid.MapOf(ids, rapid.Custom(func(t *rapid.T) ledger.Entry {
			return ledger.Entry{Version: rapid.Int64Range(1, 3).Draw(t, "v"), Balance: rapid.SampledFrom([]string{"1", "1.5"}).Draw(t, "b")}
		})).Draw(t, "ledger")
		accounts := rapid.MapOf(ids, rapid.Custom(func(t *rapid.T) ledger.Account {
			return ledger.Account{
				Exists: rapid.Bool().Draw(t, "exists"), Since: rapid.Bool().Draw(t, "since"),
				Version: rapid.Int64Range(1, 3).Draw(t, "v"), Balance: rapid.SampledFrom([]string{"1.00", "1.50"}).Draw(t, "b"),
			}
		})).Draw(t, "accounts")
		var want ledger.Report
		kinds := map[string]ledger.Kind{}
		for id, e := range entries {
			a, known := accounts[id]
			switch {
			case !known:
				kinds[id] = ledger.Missing
			case !a.Exists || a.Version < e.Version:
				want.Behind++
			case a.Version > e.Version:
				want.Ahead++
			case (a.Balance == "1.00") != (e.Balance == "1"):
				kinds[id] = ledger.Different
			default:
				want.Matched++
			}
		}
		for id, a := range accounts {
			if _, known := entries[id]; !known && a.Since {
				want.Ahead++
			} else if !known {
				kinds[id] = ledger.Unknown
			}
		}
		want.Different = int64(len(kinds))
		want.Checked = want.Matched + want.Behind + want.Ahead + want.Different
		limit := rapid.IntRange(0, 8).Draw(t, "limit")

		next, stop := iter.Pull2(sorted(entries))
		defer stop()
		c, err := ledger.NewComparison(next, limit)
		for _, id := range slices.Sorted(maps.Keys(accounts)) {
			if err != nil {
				t.Fatal(err)
			}
			a := accounts[id]
			a.ID = id
			err = c.Compare(&a)
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.End()
		if err != nil {
			t.Fatal(err)
		}
		listed := slices.Sorted(maps.Keys(kinds))
		listed = listed[:min(limit, len(listed))]
		if len(got.Differences) != len(listed) {
			t.Fatalf("%d differences, want %d", len(got.Differences), len(listed))
		}
		for i, id := range listed {
			if d := got.Differences[i]; d.AccountID != id || d.Kind != kinds[id] {
				t.Fatalf("difference %d: got %+v, want %s %s", i, d, id, kinds[id])
			}
		}
		got.Differences = nil
		if got.Checked != want.Checked || got.Matched != want.Matched || got.Behind != want.Behind || got.Ahead != want.Ahead || got.Different != want.Different {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	})
}

func sorted(entries map[string]ledger.Entry) iter.Seq2[ledger.Entry, error] {
	return func(yield func(ledger.Entry, error) bool) {
		for _, id := range slices.Sorted(maps.Keys(entries)) {
			e := entries[id]
			e.AccountID = id
			if !yield(e, nil) {
				return
			}
		}
	}
}

func TestComparisonRefusesAWrongOrder(t *testing.T) {
	next, stop := iter.Pull2(sorted(nil))
	defer stop()
	c, err := ledger.NewComparison(next, 1)
	if err == nil {
		err = c.Compare(&ledger.Account{ID: "b"})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Compare(&ledger.Account{ID: "a"}); err == nil {
		t.Error("an account out of order was compared")
	}
}

func TestSampleDrawsAllAlike(t *testing.T) {
	entries := map[string]ledger.Entry{}
	for i := range 10 {
		entries[fmt.Sprint(i)] = ledger.Entry{}
	}
	random, drawn := rand.New(rand.NewPCG(1, 2)), map[string]int{}
	for range 10_000 {
		sample, err := ledger.Sample(sorted(entries), 3, random)
		if err != nil || len(sample) != 3 || sample[0].AccountID >= sample[1].AccountID {
			t.Fatal(sample, err)
		}
		for _, e := range sample {
			drawn[e.AccountID]++
		}
	}
	for id, n := range drawn {
		if n < 2800 || n > 3200 {
			t.Errorf("account %s was drawn %d times of 10,000, expected about 3,000", id, n)
		}
	}
	if all, err := ledger.Sample(sorted(entries), 99, random); err != nil || len(all) != 10 {
		t.Error(len(all), err)
	}
}
