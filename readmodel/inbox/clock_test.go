package inbox

import (
	"testing"
	"time"
)

// If the database's clock jumps forward, the markers of recent events are not pruned.
func TestAClockThatJumpsForwardPrunesNoMoreThanAnHourTooMuch(t *testing.T) {
	const retention, day = 7 * 24 * time.Hour, 24 * time.Hour
	now := time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC)
	for ahead, want := range map[time.Duration]time.Time{
		0:                now.Add(-retention),
		30 * time.Minute: now.Add(30 * time.Minute).Add(-retention),
		30 * day:         now.Add(time.Hour).Add(-retention),
		-30 * day:        now.Add(-30 * day).Add(-retention),
	} {
		if got := pruneBefore(now.Add(ahead), now, retention); !got.Equal(want) {
			t.Errorf("%s ahead: markers before %s are pruned, want %s", ahead, got, want)
		}
	}
}
