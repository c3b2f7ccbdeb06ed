//go:build faults

package faulttest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"projector/internal/failpoint"
	"projector/internal/testbank"
	"projector/internal/testbank/compare"
)

// stormWindow is the breaker's window in records.
const stormWindow = 300

// storm is a wrong deployment that dead-letters every record that it reads.
type storm struct {
	class string
	// wrong and right are the flags of the program, during the wrong deployment and after it.
	wrong, right []string
	strike, heal func(*scene)
	// write converts a stream to the records that producers send. If write is nil, the stream is
	// sent unchanged.
	write func([]testbank.Record) []testbank.Record
}

func storms(t *testing.T) map[string]storm {
	t.Helper()
	r := newRegistry(t)
	avro := []string{"--format=avro", "--schema-registry-url=" + r.URL}
	sql := func(statement string) func(*scene) { return func(s *scene) { s.exec(statement) } }
	return map[string]storm{
		"a wrong format": {class: "malformed_payload", wrong: []string{"--format=cloudevents"}},
		"a column that refuses every row": {
			class:  "rejected_by_database",
			strike: sql("ALTER TABLE account_balance ADD COLUMN branch text NOT NULL"),
			heal:   sql("ALTER TABLE account_balance ALTER COLUMN branch SET DEFAULT 'head'"),
		},
		"an emptied registry": {
			class: "malformed_payload", wrong: avro, right: avro, write: r.write(t),
			strike: func(*scene) { r.emptied.Store(true) },
			heal:   func(*scene) { r.emptied.Store(false) },
		},
	}
}

// TestStorm starts a wrong deployment that dead-letters every record that it reads. It kills the
// program several times. Each partition must stop after at most one breaker window of dead letters.
// After an operator has corrected the cause, the read model must become right.
func TestStorm(t *testing.T) {
	kafka := broker(t)
	for name, storm := range storms(t) {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, kafka, setting{partitions: 2, replicas: -1, records: 6000, clean: true})
			s.startWatch()
			records := testbank.Generate(testbank.Options{
				Seed: s.seed, Records: s.setting.records, Partitions: 2, Accounts: 2000, Clean: true,
			})
			sent := records
			if storm.write != nil {
				sent = storm.write(records)
			}
			check(t, s.producer.Send(t.Context(), sent))
			hits, began := storm.breaks(s)

			if storm.heal != nil {
				storm.heal(s)
			}
			s.runCommand("position", "set", "--all", "--start", "--reason=storm", "--yes")
			s.runCommand("resume", "--all", "--reason=storm", "--yes")
			s.launch("", storm.right...)
			s.healed()
			s.await("all consumed", s.arrived)
			o := testbank.New(testbank.IgnoredType)
			o.Decide(records)
			s.await("the read model is the oracle's", func() string {
				return compare.Differences(must(compare.Rows(t.Context(), s.db, ""))(t), o)
			})
			report(figure{Fault: "storm: " + name, Hits: hits, Struck: time.Since(began).Round(100 * time.Millisecond).String(), Seed: s.seed})
			s.terminate()
		})
	}
}

// The method breaks starts the wrong deployment, kills the program several times, and waits until
// every partition has stopped. It returns the number of kills and the time of the last start.
func (storm *storm) breaks(s *scene) (hits int, began time.Time) {
	s.t.Helper()
	if storm.strike != nil {
		storm.strike(s)
	}
	flags := slices.Concat(storm.wrong, []string{fmt.Sprint("--breaker-window=", stormWindow)})
	for _, point := range []string{failpoint.DLQAcknowledged, failpoint.BeforeCommit, failpoint.AfterCommit} {
		hits += s.dies(s.launch(point+"=kill@1", flags...))
		s.evict()
	}
	began = time.Now()
	s.launch("", flags...)
	s.await("every partition stops", func() string {
		var open int32
		check(s.t, s.db.QueryRow(s.t.Context(), "SELECT count(*) FROM projector_position WHERE breaker_reason LIKE '%'||$1||'%'", storm.class).Scan(&open))
		if open != s.setting.partitions {
			return fmt.Sprintf("%d of %d", open, s.setting.partitions)
		}
		return ""
	})
	if hits == 0 {
		s.t.Error("nothing was killed: this proves nothing")
	}
	for partition, n := range s.deadLettersOf(storm.class) {
		if n > stormWindow {
			s.t.Errorf("%d records of partition %d were dead-lettered, want at most %d", n, partition, stormWindow)
		}
	}
	s.terminate()
	return hits, began
}

// deadLettersOf returns, for each partition, how many different records have a dead letter of a
// class.
func (s *scene) deadLettersOf(class string) map[int32]int {
	s.t.Helper()
	seen, letters := map[string]bool{}, map[int32]int{}
	for line := range strings.Lines(s.runCommand("dlq", "list", "--class="+class)) {
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

// runCommand runs one of the operator's commands to its end and returns the output.
func (s *scene) runCommand(args ...string) string {
	s.t.Helper()
	c := s.command(args...)
	if status := c.Exit(patience); status != 0 {
		s.t.Fatalf("%s: exit status %d:\n%s", strings.Join(args, " "), status, c.Log())
	}
	return c.out.String()
}
