package cli

import "testing"

func TestSizesAreReadAsPeopleWriteThem(t *testing.T) {
	for text, want := range map[string]byteSize{
		"536870912": 512 << 20, "512MiB": 512 << 20, "512Mi": 512 << 20, "0.5GiB": 512 << 20, "1 GiB": 1 << 30, "500MB": 500e6, "7B": 7,
	} {
		var got byteSize
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "MiB", "-1MiB", "1TiB5", "many", "NaN", "1e30GiB"} {
		var got byteSize
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was taken for %d", text, got)
		}
	}
}

// What is shared out, the garbage that may lie beside it and all that is not the
// heap's must fit, at any size.
func TestTheSharesFitTheLimit(t *testing.T) {
	for limit := leastMemory; limit <= 16<<30; limit *= 2 {
		p := planMemory(limit)
		used := p.accounts + 2*p.queued + p.pending + 2*p.fetch
		if most := int64(used)*(100+gcPercent)/100 + floor*gcPercent/100 + outsideHeap; most > int64(limit) {
			t.Errorf("%s: %d bytes may be used", limit, most)
		}
		if share := p.accountsShare(256); 256*share > max(p.accounts, 256*leastShare) {
			t.Errorf("%s: 256 partitions may remember %d bytes each", limit, share)
		}
	}
}
