package inspect

import (
	"fmt"
	"math"
	"testing"

	"projector/internal/topic"
)

// The records are divided at once, however many they are. One after the other would take years here.
func TestALimitIsShared(t *testing.T) {
	const huge = math.MaxInt64
	for _, c := range []struct {
		sizes []int64
		limit int64
		want  string
	}{
		{nil, 10, "[]"},
		{[]int64{0, 0}, 10, "[0 0]"},
		{[]int64{5}, 3, "[3]"},
		{[]int64{5, 5, 5}, 2, "[1 1 0]"},
		{[]int64{5, 5, 5}, 10, "[4 3 3]"},
		{[]int64{1, 0, 9, 2}, 10, "[1 0 7 2]"},
		{[]int64{1, 0, 9, 2}, huge, "[1 0 9 2]"},
		{[]int64{huge, 1, huge}, huge, "[4611686018427387903 1 4611686018427387903]"},
	} {
		var spans []topic.Span
		for _, size := range c.sizes {
			spans = append(spans, topic.Span{From: huge - size, To: huge})
		}
		if got := fmt.Sprint(share(spans, c.limit)); got != c.want {
			t.Errorf("%d of %v: %s, want %s", c.limit, c.sizes, got, c.want)
		}
	}
}
