package cli

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/dlq"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
)

// deadLetters produces n dead letters of as many accounts to the DLQ topic.
func (s *stage) deadLetters(n int) {
	s.t.Helper()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range n {
		account := fmt.Sprintf("acc-%06d", i)
		letter := projection.DeadLetter{
			Class: event.VersionGap, Message: "gap", AccountID: account, EventID: account + "-2", Received: 2,
			Record: projection.Record{
				Topic: s.topic, Offset: int64(i), Message: event.Message{Key: []byte(account), Value: []byte(eventOf(account, 2, `"1"`))},
			},
		}
		s.client.Produce(s.t.Context(), dlq.Record(letter, dlq.Stamp{Group: "g", Projection: readmodel.BalanceName}, s.topic+".dlq", at), func(_ *kgo.Record, err error) {
			if err != nil {
				s.t.Error(err)
			}
		})
	}
	if err := s.client.Flush(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func TestAListOfManyIsStreamed(t *testing.T) {
	s := newStage(t)
	if _, err := kadm.NewClient(s.client).CreateTopic(t.Context(), 1, -1, nil, s.topic+".dlq"); err != nil {
		t.Fatal(err)
	}
	const n = 2*scanRecords + 10
	s.deadLetters(n)
	// Somebody else's record, at the very end.
	if err := s.client.ProduceSync(t.Context(), &kgo.Record{Topic: s.topic + ".dlq", Value: []byte("?")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(s.must("dlq", "list", "--output=json"), "\n"); got != n {
		t.Errorf("%d lines, want %d", got, n)
	}

	flags := &dlqFlags{}
	flags.Brokers, flags.Topic, flags.DatabaseURL = s.addrs, s.topic, s.url
	flags.Projection = readmodel.BalanceName
	flags.Format, flags.FirstVersion, flags.Currencies, flags.LogLevel = event.FormatJSON, 1, "all", "error"
	flags.DebeziumTimeUnit = event.RFC3339.String()
	tools, err := flags.open(t.Context(), &streams{out: io.Discard, err: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	defer tools.close()
	look, handed := &scan{dlqTools: tools}, 0
	err = look.each(t.Context(), func(d *deadLetter) error {
		if handed++; handed == scanRecords && look.foreign != 0 {
			t.Error("the end of the topic was read before the first chunk was handed on")
		}
		if d.entry.Value != nil {
			t.Fatal("a list keeps payloads")
		}
		return nil
	})
	if err != nil || handed != n || look.foreign != 1 {
		t.Errorf("handed on %d, foreign %d, error %v", handed, look.foreign, err)
	}
}

func TestMoments(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	cases := map[string]string{
		"":                          "0001-01-01T00:00:00Z",
		"24h":                       "2026-02-28T12:00:00Z",
		"7d":                        "2026-02-22T12:00:00Z",
		"90m":                       "2026-03-01T10:30:00Z",
		"2026-01-01T01:00:00+01:00": "2026-01-01T00:00:00Z",
		"yesterday":                 "refused",
		"-1h":                       "refused",
		"-1d":                       "refused",
		"2026-01-01":                "refused",
	}
	for text, want := range cases {
		got, err := moment("--since", text, now)
		if said := timeText(got); err == nil && said != want || (err != nil) != (want == "refused") {
			t.Errorf("%q: %s, %v; want %s", text, said, err, want)
		}
	}
}

func TestATableFitsAndMovesNoCursor(t *testing.T) {
	var out strings.Builder
	table := newTable(&out, "B", column{name: "A", width: 5}, column{name: "B", width: 5, right: true}, column{name: "C"})
	table.limit = 20
	table.row("a\x1b[2J\n", "7", "a text that is much too long for it")
	if err := table.flush(); err != nil {
		t.Fatal(err)
	}
	equal(t, out.String(), "a\uFFFD[2…      7  a tex…\n")
}

func TestTimesBeyondTheYear9999AreWritten(t *testing.T) {
	equal(t, timeText(time.UnixMicro(253402300800_000000)), "10000-01-01T00:00:00Z")
	equal(t, timeText(time.Date(-1, 12, 31, 23, 0, 0, 0, time.UTC)), "-0001-12-31T23:00:00Z")
}
