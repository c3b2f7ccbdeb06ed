package readmodel

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSortStable compares SortStable with slices.SortStableFunc.
func TestSortStable(t *testing.T) {
	type item struct{ key, place int }
	rapid.Check(t, func(rt *rapid.T) {
		keys := rapid.SliceOf(rapid.IntRange(0, 9)).Draw(rt, "keys")
		items := make([]item, len(keys))
		for i, k := range keys {
			items[i] = item{k, i}
		}
		want := slices.Clone(items)
		slices.SortStableFunc(want, func(a, b item) int { return cmp.Compare(a.key, b.key) })
		SortStable(items, func(a, b *item) int { return cmp.Compare(a.key, b.key) })
		if !slices.Equal(items, want) {
			rt.Fatalf("%v, want %v", items, want)
		}
	})
}
