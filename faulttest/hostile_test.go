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

// TestHostileRecords sends random records through the whole program. About a tenth of them have a
// few random bytes changed. No record may end the program. The outcomes by partition (applied,
// duplicate, ignored or dead-lettered) must equal those of the oracle.
func TestHostileRecords(t *testing.T) {
	total := scaled(1_000_000, 30_000)
	if text := os.Getenv("PROJECTOR_HOSTILE_RECORDS"); text != "" {
		total = must(strconv.Atoi(text))(t)
	}
	kafka := broker(t)
	s := newScene(t, kafka, setting{
		partitions: 6, recovers: 4 * time.Minute,
		flags: []string{
			"--currencies=EUR,USD,GBP,CHF,JPY,ISK,KWD,BHD,CLF", // the currencies of the oracle
			"--breaker-share=0", // the share of dead letters grows because more and more accounts wait
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
			accounts.isHome(&records[i])
		}
		for i, whole := range records {
			if s.rnd.IntN(10) != 0 {
				continue
			}
			if testbank.Break(s.rnd, &records[i]); accounts.isHome(&records[i]) {
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

// homes maps accounts to partitions. A record with changed bytes may name an account of another
// partition. The order of that account's events would be undefined, so the test does not send such
// a record.
type homes map[string]int32

// isHome reports whether the record is in the partition of its account, which is the partition of
// the account's first record. It returns true if the account cannot be decoded.
func (h homes) isHome(r *testbank.Record) bool {
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
