package process_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"projector/internal/cli/clitest"
	"projector/internal/cli/flags"
	"projector/internal/cli/process"
)

// TestPageOfARunningProcess shows that the status page and /status.json have the state of the
// process, and the same dead letters as the command dlq list.
func TestPageOfARunningProcess(t *testing.T) {
	for _, c := range []struct {
		projection, parked, page, none string
		letters                        int
		inbox                          bool
	}{
		{"account_balance", "1 account, 1 event, map[version_gap:1]", "Accounts waiting", "Inbox", 2, false},
		{"account_statement", "nothing", "account-statement-projector", "Accounts waiting", 1, false},
		{"daily_turnover", "nothing", "Inbox rows", "Accounts waiting", 1, true},
	} {
		t.Run(c.projection, func(t *testing.T) {
			s := clitest.NewStage(t)
			s.UseProjection(c.projection)
			s.Produce(clitest.EventOf("a", 1, `"1"`), clitest.EventOf("secret-account", 3, `"4"`), "garbage", clitest.EventOf("a", 2, `"31415926.53"`))
			var got statusJSON
			address := running(s)
			askUntil(s, address+"/status.json", &got, func() bool {
				return len(got.Partitions) == 1 && got.Partitions[0].Position == 4 && got.Partitions[0].End == 4 && got.Ready &&
					got.parked() == c.parked && (got.InboxRows != nil) == c.inbox && got.RecordsPerSecond != nil && got.LastProgressAt != nil
			})
			if p := got.Partitions[0]; p.Lag == nil || *p.Lag != 0 || p.State != "flowing" && p.State != "idle" {
				t.Errorf("partition 0: %+v", p)
			}
			want := clitest.Pick(s.Lines("dlq", "list"), "class", "dlq_partition", "dlq_offset", "topic", "partition", "offset")
			var reported []string
			for _, l := range got.DeadLetters.Recent {
				reported = append([]string{fmt.Sprintf("%s %d %d %s %d %d", l.Class, l.DLQPartition, l.DLQOffset, l.Topic, l.Partition, l.Offset)}, reported...)
			}
			clitest.Equal(t, strings.Join(reported, ", "), want)
			if got.DeadLetters.Total != c.letters {
				t.Errorf("%d dead letters", got.DeadLetters.Total)
			}
			page, doc, history := fetch(t, address+"/"), fetch(t, address+"/status.json"), fetch(t, address+"/history.json")
			clitest.Contains(t, page, c.projection, c.page, "malformed_payload", s.Topic+"/0/2")
			clitest.Contains(t, history, `"lag_records":[`)
			for _, text := range []string{"secret-account", "31415926.53", "garbage"} {
				if strings.Contains(page+doc+history, text) {
					t.Errorf("the page shows %s", text)
				}
			}
			if strings.Contains(page, c.none) {
				t.Errorf("the page of %s speaks of %q", c.projection, c.none)
			}
		})
	}
}

// statusJSON has the fields of /status.json that the tests use.
type statusJSON struct {
	Ready            bool
	Warnings         []struct{ Condition, Reason string }
	LastProgressAt   *time.Time     `json:"last_progress_at"`
	RecordsPerSecond map[string]any `json:"records_per_second"`
	InboxRows        *int64         `json:"inbox_rows"`
	MarginSeconds    *float64       `json:"margin_seconds"`
	Parked           *struct {
		Accounts, Events int
		ByClass          map[string]int `json:"by_class"`
	}
	Partitions []struct {
		Position, End int64
		MarginRecords *int64   `json:"margin_records"`
		MarginSeconds *float64 `json:"margin_seconds"`
		Lag           *int64   `json:"lag_records"`
		State         string
	}
	DeadLetters struct {
		Total  int
		Recent []struct {
			Class, Topic      string
			DLQPartition      int `json:"dlq_partition"`
			DLQOffset         int `json:"dlq_offset"`
			Partition, Offset int
		}
	} `json:"dead_letters"`
}

func (s *statusJSON) parked() string {
	if s.Parked == nil {
		return "nothing"
	}
	return fmt.Sprintf("%d account, %d event, %v", s.Parked.Accounts, s.Parked.Events, s.Parked.ByClass)
}

// The function running starts a process as `run` does and returns its URL.
func running(s *clitest.Stage) string { return runningWith(s, slog.DiscardHandler) }

func runningWith(s *clitest.Stage, log slog.Handler) string {
	s.T.Helper()
	var c process.Flags
	parser, err := kong.New(&c, kong.Bind(flags.BuildInfo{}), kong.Vars{"version": "test"})
	if err != nil {
		s.T.Fatal(err)
	}
	if _, err := parser.Parse(s.Servers([]string{"run", "--listen=127.0.0.1:0"})[1:]); err != nil {
		s.T.Fatal(err)
	}
	p, err := c.Build(s.T.Context(), slog.New(log), flags.BuildInfo{})
	if err != nil {
		s.T.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	if err := p.Listen(ctx); err != nil {
		s.T.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Project(ctx) }()
	s.T.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			s.T.Error(err)
		}
		p.Close()
	})
	return "http://" + p.Addr()
}

// askUntil reads a JSON document repeatedly until the function holds returns true.
func askUntil(s *clitest.Stage, url string, doc *statusJSON, holds func() bool) {
	s.T.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	end := time.After(3 * time.Minute)
	for {
		*doc = statusJSON{}
		body := fetch(s.T, url)
		if err := json.Unmarshal([]byte(body), doc); err != nil {
			s.T.Fatal(err)
		}
		if holds() {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			s.T.Fatalf("at last %s", body)
		}
	}
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %v", url, answer.StatusCode, err)
	}
	return string(body)
}
