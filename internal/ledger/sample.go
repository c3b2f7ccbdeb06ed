package ledger

import (
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
)

// Sample draws n of the entries at random, all with the same chance, and answers them
// by account id. It reads all entries, so that nothing wrong with one passes unseen.
func Sample(entries iter.Seq2[Entry, error], n int, random *rand.Rand) ([]Entry, error) {
	drawn, seen := make([]Entry, 0, min(n, 1<<16)), 0
	for entry, err := range entries {
		if err != nil {
			return nil, err
		}
		if seen++; len(drawn) < n {
			drawn = append(drawn, entry)
		} else if at := random.IntN(seen); at < n {
			drawn[at] = entry
		}
	}
	slices.SortFunc(drawn, func(a, b Entry) int { return strings.Compare(a.AccountID, b.AccountID) })
	return drawn, nil
}
