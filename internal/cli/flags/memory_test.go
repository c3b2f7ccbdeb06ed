package flags

import (
	"testing"
)

// The test adds the shares, the garbage of the heap and the memory outside the heap. The sum must
// fit into the limit, for limits from leastMemory to 16 GiB.
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

// Other parts of the process use 320 MiB here. The shares, the garbage and this memory together
// must fit into the limit, for limits from standardMemory to 16 GiB.
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
