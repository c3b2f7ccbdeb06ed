package testbank

import "testing"

// TestATransactionIsOneRun expects that each transaction holds many records. A transaction of one
// record would only make the production of a stream slow.
func TestATransactionIsOneRun(t *testing.T) {
	const records = 10_000
	runs, aborted, committed := map[int]int{}, map[int]int{}, map[int]int{}
	last := 0
	for _, r := range Generate(Options{Seed: 3, Records: records, Partitions: 3, Accounts: 300, Rivals: true, Transactions: true}) {
		if r.Transaction != last && r.Transaction != 0 {
			runs[r.Transaction]++
		}
		switch last = r.Transaction; {
		case r.Transaction == 0:
		case r.Abort:
			aborted[r.Transaction]++
		default:
			committed[r.Transaction]++
		}
	}
	if len(aborted) == 0 || len(committed) == 0 {
		t.Fatalf("%d transactions are aborted, %d committed", len(aborted), len(committed))
	}
	for id, n := range runs {
		if n != 1 || aborted[id] > 0 && committed[id] > 0 || aborted[id]+committed[id] < records/200 {
			t.Errorf("transaction %d has %d runs, %d aborted records and %d others", id, n, aborted[id], committed[id])
		}
	}
}
