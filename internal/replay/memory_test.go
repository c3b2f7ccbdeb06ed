package replay_test

import (
	"runtime"
	"testing"
	"weak"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/replay"
)

// A replay keeps many dead letters in memory. None of them may keep the response of a broker, which
// has many records.
func TestAReplayKeepsNoResponseInMemory(t *testing.T) {
	from, in := &source{}, &store{versions: map[string]int64{}}
	r := &replay.Replay{}
	response := letterIn(from)
	planned(t, r, from, in)
	from.records = nil
	runtime.GC()
	if response.Value() != nil {
		t.Error("the response is still in memory")
	}
	if got := outcomes(r); got != "a 1 will_apply" {
		t.Error(got)
	}
}

// letterIn adds a dead letter whose value is part of a response.
func letterIn(from *source) weak.Pointer[[1 << 16]byte] {
	response := new([1 << 16]byte)
	record := gap("a", 1, 0)
	n := copy(response[:], record.Value)
	record.Value = response[:n:n]
	from.records = []*kgo.Record{record}
	return weak.Make(response)
}
