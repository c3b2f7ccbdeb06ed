package flags

import (
	"testing"
)

// The shares, the garbage of the heap and all other memory must fit into the limit, for every
// limit.
func TestTheSharesFitTheLimit(t *testing.T) {
	for limit := leastMemory; limit <= 16<<30; limit *= 2 {
		p := ShareMemory(limit)
		used := max(p.Ledger, p.accounts+2*p.queued+p.pending+2*p.fetch)
		if most := int64(used)*(100+gcPercent)/100 + unusedBytes*gcPercent/100 + outsideHeap; most > int64(limit) {
			t.Errorf("%s: %d bytes may be used", limit, most)
		}
		if share := p.AccountsShare(256); 256*share > max(p.accounts, 256*leastShare) {
			t.Errorf("%s: 256 partitions may remember %d bytes each", limit, share)
		}
	}
}

// If other parts of the process use memory too, everything must fit into every limit from the
// default limit up.
func TestTheSharesLeaveRoomForOthers(t *testing.T) {
	const others = 320 << 20
	for limit := standardMemory; limit <= 16<<30; limit *= 2 {
		p := ShareMemoryWith(others, limit)
		used := p.accounts + 2*p.queued + p.pending + 2*p.fetch
		if most := int64(used)*(100+gcPercent)/100 + unusedBytes*gcPercent/100 + outsideHeap + others; most > int64(limit) {
			t.Errorf("%s: %d bytes may be used", limit, most)
		}
		if all := ShareMemory(limit); p.heap != all.heap || 5*(p.accounts+1) < 2*all.accounts { // rounding
			t.Errorf("%s: %+v, of %+v", limit, p, all)
		}
	}
}
