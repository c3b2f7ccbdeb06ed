//go:build faults

package faulttest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/failpoint"
	"projector/internal/testbank"
	"projector/internal/testbank/compare"
)

// TestStorm has a deployment gone wrong dead-letter every record, and kills the program
// while it does: each partition stops with a window of dead letters published, and comes
// right when a person has set right what was wrong.
func TestStorm(t *testing.T) {
	const window = 300
	kafka := broker(t)
	for name, storm := range map[string]struct {
		flags        []string
		class        string
		strike, heal string // SQL
	}{
		"a wrong format": {flags: []string{"--format=cloudevents"}, class: "malformed_payload"},
		"a column that refuses every row": {
			class:  "rejected_by_database",
			strike: "ALTER TABLE account_balance ADD COLUMN branch text NOT NULL",
			heal:   "ALTER TABLE account_balance ALTER COLUMN branch SET DEFAULT 'head'",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, kafka, setting{partitions: 2, replicas: -1, records: 6000, clean: true})
			s.startWatch()
			check(t, s.producer.Send(t.Context(), testbank.Generate(testbank.Options{
				Seed: s.seed, Records: s.setting.records, Partitions: 2, Accounts: 2000, Clean: true,
			})))
			s.exec(storm.strike)
			flags := slices.Concat(storm.flags, []string{fmt.Sprint("--breaker-window=", window)})
			hits := 0
			for _, point := range []string{failpoint.DLQAcknowledged, failpoint.BeforeCommit, failpoint.AfterCommit} {
				hits += s.dies(s.launch(point+"=kill@1", flags...))
				s.evict()
			}
			began := time.Now()
			s.launch("", flags...)
			s.await("every partition stops", func() string {
				var open int32
				check(t, s.db.QueryRow(t.Context(), "SELECT count(*) FROM projector_position WHERE breaker_reason LIKE '%'||$1||'%'", storm.class).Scan(&open))
				if open != s.setting.partitions {
					return fmt.Sprintf("%d of %d", open, s.setting.partitions)
				}
				return ""
			})
			if hits == 0 {
				t.Error("nothing was killed: this proves nothing")
			}
			for partition, n := range s.lettersOf(storm.class) {
				if n > window {
					t.Errorf("%d records of partition %d were dead-lettered, want at most %d", n, partition, window)
				}
			}
			s.terminate()

			s.exec(storm.heal)
			s.does("position", "set", "--all", "--start", "--reason=storm", "--yes")
			s.does("resume", "--all", "--reason=storm", "--yes")
			s.launch("")
			s.healed()
			s.await("all consumed", s.arrived)
			o := testbank.New(testbank.IgnoredType)
			o.Decide(must(compare.ReadTopic(t.Context(), s.reader.Topic, kgo.SeedBrokers(s.addrs...)))(t))
			s.await("the read model is the oracle's", func() string {
				return compare.Differences(must(compare.Rows(t.Context(), s.db, ""))(t), o)
			})
			report(figure{Fault: "storm: " + name, Hits: hits, Struck: time.Since(began).Round(100 * time.Millisecond).String(), Seed: s.seed})
			s.terminate()
		})
	}
}

// lettersOf is how many different records of each partition were dead-lettered with a class.
func (s *scene) lettersOf(class string) map[int32]int {
	s.t.Helper()
	seen, letters := map[string]bool{}, map[int32]int{}
	for line := range strings.Lines(s.does("dlq", "list", "--class="+class)) {
		var l struct {
			Partition int32
			Offset    int64
		}
		check(s.t, json.Unmarshal([]byte(line), &l))
		if at := fmt.Sprint(l.Partition, "/", l.Offset); !seen[at] {
			seen[at] = true
			letters[l.Partition]++
		}
	}
	return letters
}

// does runs a command to its end and returns what it prints.
func (s *scene) does(args ...string) string {
	s.t.Helper()
	c := s.command(args...)
	if status := c.Exit(patience); status != 0 {
		s.t.Fatalf("%s: exit status %d:\n%s", strings.Join(args, " "), status, c.Log())
	}
	return c.out.String()
}
