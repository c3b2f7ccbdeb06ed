package position_test

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

// A time in the future is probably mistyped. Such a time would skip all records, so it is refused,
// unless the partition has a record of that time or later.
func TestATimeInTheFutureIsRefused(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("a", 1, `"1"`))
	s.Consuming(nil)
	s.Produce(clitest.EventOf("a", 2, `"1"`))
	set := func(at time.Time, more ...string) []string {
		return append([]string{"position", "set", "--partition=0", "--time=" + at.UTC().Format(time.RFC3339), "--reason=x"}, more...)
	}
	future := time.Now().Add(24 * time.Hour)
	for _, more := range []string{"--new-group", "--skip-unread"} {
		said := s.Refused(exit.Failed, set(future, more)...)
		clitest.Contains(t, said, "--time: 2", " is in the future", "partition 0 has no record of that time or later", "use a time that has passed, or --end")
		if strings.Contains(said, "--skip-unread") {
			t.Error(said)
		}
	}
	s.Append(&kgo.Record{Key: []byte("k"), Value: []byte(clitest.EventOf("a", 3, `"1"`)), Timestamp: future.Add(time.Hour)})
	clitest.Contains(t, s.Must(set(future, "--skip-unread")...), "partition 0: would be set from 1 to 2")
	clitest.Contains(t, s.Must(set(time.Now().Add(-time.Hour))...), "partition 0: would be set from 1 to 0")
}

// Kafka reads a negative time as a name for an offset. The millisecond before 1970 is its name for the
// end of the log.
func TestATimeBefore1970IsTheStart(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("a", 1, `"1"`))
	s.Consuming(nil)
	for _, at := range []string{"1969-12-31T23:59:59.999Z", "1900-01-01T00:00:00Z", "36500d"} {
		clitest.Contains(t, s.Must("position", "set", "--partition=0", "--time="+at, "--reason=x"), "partition 0: would be set from 1 to 0")
	}
}
