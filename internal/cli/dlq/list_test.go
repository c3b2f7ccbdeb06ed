package dlq_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/dlq"
	"projector/internal/cli/clitest"
	"projector/internal/replay"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
)

// manyDeadLetters produces n dead letters of n accounts to the DLQ topic.
func manyDeadLetters(s *clitest.Stage, n int) {
	s.T.Helper()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range n {
		account := fmt.Sprintf("acc-%06d", i)
		letter := projection.DeadLetter{
			Class: event.VersionGap, Message: "gap", AccountID: account, EventID: account + "-2", Received: 2,
			Record: projection.Record{
				Topic: s.Topic, Offset: int64(i), Message: event.Message{Key: []byte(account), Value: []byte(clitest.EventOf(account, 2, `"1"`))},
			},
		}
		s.Client.Produce(s.T.Context(), dlq.Record(letter, dlq.Stamp{Group: "g", Projection: readmodel.BalanceName}, s.Topic+".dlq", at), func(_ *kgo.Record, err error) {
			if err != nil {
				s.T.Error(err)
			}
		})
	}
	if err := s.Client.Flush(s.T.Context()); err != nil {
		s.T.Fatal(err)
	}
}

func TestAListOfManyIsWhole(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	if _, err := kadm.NewClient(s.Client).CreateTopic(t.Context(), 1, -1, nil, s.Topic+".dlq"); err != nil {
		t.Fatal(err)
	}
	const n = 2*replay.ChunkRecords + 10
	manyDeadLetters(s, n)
	// The last record of the topic is not a dead letter.
	if err := s.Client.ProduceSync(t.Context(), &kgo.Record{Topic: s.Topic + ".dlq", Value: []byte("?")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(s.Must("dlq", "list", "--output=json"), "\n"); got != n {
		t.Errorf("%d lines, want %d", got, n)
	}
}
