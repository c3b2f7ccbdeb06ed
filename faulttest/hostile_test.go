//go:build faults

package faulttest

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"projector/e2e/oracle"
	"projector/e2e/stream"
	"projector/e2e/wait"
)

// TestHostileRecords sends random records through the whole path: a tenth of them
// is broken anywhere by a few random bytes. No record may end the program, and each
// is accounted for, by partition: applied, duplicate, ignored or dead-lettered, as
// the oracle says.
func TestHostileRecords(t *testing.T) {
	total := scaled(1_000_000, 30_000)
	if text := os.Getenv("PROJECTOR_HOSTILE_RECORDS"); text != "" {
		total = must(strconv.Atoi(text))(t)
	}
	kafka := broker(t)
	s := newScene(t, kafka, setting{
		partitions: 6, recovers: 4 * time.Minute,
		flags: []string{"--currencies=EUR,USD,GBP,CHF,JPY,ISK,KWD,BHD,CLF"}, // those the oracle knows
	})
	s.startWatch()
	const chunk = 20_000
	for sent := 0; sent < total; sent += chunk {
		records := stream.Generate(stream.Options{
			Seed: s.seed + uint64(sent), Records: min(chunk, total-sent), Partitions: 6, Accounts: 4000, Prefix: fmt.Sprint(sent, "-"), Scattered: true, Rivals: true,
		})
		for i := range records {
			if s.rnd.IntN(10) == 0 {
				stream.Break(s.rnd, &records[i])
			}
		}
		check(t, s.producer.Send(t.Context(), records))
	}
	began := time.Now()
	r := s.launch("")
	wait.Until(t, s.setting.recovers, "every record consumed", s.arrived)
	took := time.Since(began)
	v := s.judge("--wait=60s", "--exactly-once")
	samples := r.Metrics()
	for p, want := range v.Outcomes {
		got := oracle.Outcomes{
			Applied: s.outcome(samples, p, "applied"), Duplicate: s.outcome(samples, p, "duplicate"),
			Ignored: s.outcome(samples, p, "ignored"), DeadLettered: s.outcome(samples, p, "dead_lettered"),
		}
		if got != *want {
			t.Errorf("partition %d: %+v, want %+v", p, got, *want)
		}
		if all := got.Applied + got.Duplicate + got.Ignored + got.DeadLettered; int64(all) != s.ends()[p] {
			t.Errorf("partition %d: %d accounted for of %d", p, all, s.ends()[p])
		}
	}
	s.exact("random records", v.Letters, 0, took)
}

func (s *scene) outcome(samples map[string]float64, partition int32, outcome string) int {
	return int(samples[fmt.Sprintf(`projector_records_total{outcome=%q,partition="%d",projection="account_balance",topic=%q}`,
		outcome, partition, s.reader.Topic)])
}
