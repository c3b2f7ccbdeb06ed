//go:build faults

package faulttest

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"projector/e2e/wait"
	"projector/internal/testbank"
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
		flags: []string{
			"--currencies=EUR,USD,GBP,CHF,JPY,ISK,KWD,BHD,CLF", // those the oracle knows
			"--breaker-share=0", // as more accounts wait, what counts is more and more the broken ones
		},
	})
	s.startWatch()
	const chunk = 20_000
	broken := 0
	accounts := homes{}
	for sent := 0; sent < total; sent += chunk {
		records := testbank.Generate(testbank.Options{
			Seed: s.seed + uint64(sent), Records: min(chunk, total-sent), Partitions: 6, Accounts: 4000, Prefix: fmt.Sprint(sent, "-"), Scattered: true, Rivals: true,
		})
		for i := range records {
			accounts.has(&records[i])
		}
		for i, whole := range records {
			if s.rnd.IntN(10) != 0 {
				continue
			}
			if testbank.Break(s.rnd, &records[i]); accounts.has(&records[i]) {
				broken++
			} else {
				records[i] = whole
			}
		}
		check(t, s.producer.Send(t.Context(), records))
	}
	began := time.Now()
	s.launch("")
	wait.Until(t, s.setting.recovers, "every record consumed", s.arrived)
	took := time.Since(began)
	s.exact("random records", broken, 0, took, "--exactly-once")
}

// homes are the partitions of accounts. Broken bytes may name another account: where that
// is one of another partition, nothing says which of its events comes first.
type homes map[string]int32

// has reports whether the record's account, if one can be read, is of its partition.
func (h homes) has(r *testbank.Record) bool {
	var named struct {
		AccountID string `json:"accountId"`
	}
	if json.Unmarshal(r.Value, &named) != nil || named.AccountID == "" {
		return true
	}
	home, known := h[named.AccountID]
	if !known {
		h[named.AccountID] = r.Partition
	}
	return !known || home == r.Partition
}
