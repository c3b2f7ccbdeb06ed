package cli

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"projector/internal/consumer"
	"projector/readmodel"
)

// byteSize is a number of bytes, written as 536870912, 512MiB, 512Mi or 0.5GiB.
type byteSize int64

// byteUnits are tried in this order: a longer name before one it ends in.
var byteUnits = []struct {
	suffix string
	bytes  float64
}{
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"Ki", 1 << 10},
	{"Mi", 1 << 20},
	{"Gi", 1 << 30},
	{"KB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"B", 1},
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *byteSize) UnmarshalText(text []byte) error {
	number, unit := string(text), 1.0
	for _, u := range byteUnits {
		if cut, has := strings.CutSuffix(number, u.suffix); has {
			number, unit = strings.TrimSpace(cut), u.bytes
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !(n >= 0 && n*unit < math.MaxInt64) {
		return fmt.Errorf("%q is not a size; write it as 512MiB or as a number of bytes", text)
	}
	*b = byteSize(n * unit)
	return nil
}

// String is the size in MiB.
func (b byteSize) String() string {
	return strconv.FormatFloat(float64(b)/(1<<20), 'f', -1, 64) + "MiB"
}

// memoryFlags bound the process.
type memoryFlags struct {
	MemoryLimit byteSize `env:"MEMORY_LIMIT" default:"512MiB" placeholder:"SIZE" group:"Projection" help:"Resident memory the process stays under, e.g. 512MiB or 1GiB (default 512MiB). More folds deeper and remembers more accounts."`
}

// leastMemory is what the program needs to work at all.
const leastMemory byteSize = 96 << 20

func (f *memoryFlags) validate() error {
	if f.MemoryLimit < leastMemory {
		return usagef("--memory-limit (MEMORY_LIMIT): must be at least %s", leastMemory)
	}
	return nil
}

// memoryPlan is how --memory-limit is shared out: see docs/decisions/0006. Together
// the shares are half of it, because the garbage collector needs room and because a
// quarter of what comparable listeners take is enough to be several times as fast.
type memoryPlan struct {
	heap     int64 // the garbage collector's soft limit
	accounts int   // all accounts in memory
	floors   int   // out of accounts, while a topic comes again: see readmodel.FloorReader
	queued   int   // records fetched and not judged; twice that at worst
	pending  int   // dead letters, parked events and rows to be written
	fetch    int   // what one fetch of two may bring
}

const (
	// outsideHeap is what is resident and not the garbage collector's: the program's
	// text and what the kernel keeps for its threads. Measured: 29 MiB.
	outsideHeap = 32 << 20
	// gcPercent is how much garbage there may be beside what is in use. Accounts hold
	// no pointers, so a collection costs little: at 30 it took 1 to 2 % more CPU than at
	// Go's 100.
	gcPercent = 30
	// floor is a heap that is never used, and so never resident: while little is in use,
	// the collector counts it in and waits for 10 MiB of garbage. Without it a steady
	// 1,000 events/s took 16 to 17 % of a core, with collections as rare as this 12 to 13.
	floor = 32 << 20
)

func planMemory(limit byteSize) memoryPlan {
	l := int(limit - outsideHeap)
	return memoryPlan{
		heap:     int64(l - l/20), // a soft limit, and so with a margin
		accounts: l / 4,
		floors:   l / 8,
		queued:   l / 20,
		pending:  l / 12,
		fetch:    l / 64,
	}
}

// apply makes the garbage collector keep to the plan, unless GOMEMLIMIT and GOGC say
// otherwise, until release is called.
func (p *memoryPlan) apply() (release func()) {
	var unused []byte
	if os.Getenv("GOGC") == "" {
		unused = make([]byte, floor)
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(p.heap + int64(len(unused)))
	}
	return func() { runtime.KeepAlive(unused) }
}

// limits are those of the consumer, narrowed by what the projection wants. A batch of
// batchBytes, by --max-batch-bytes, comes on top, for it is in memory as a whole.
func (p *memoryPlan) limits(kind readmodel.Kind, batchBytes int) consumer.Limits {
	l := consumer.DefaultLimits()
	l.BatchBytes = batchBytes
	l.QueueBytes, l.FlushBytes, l.FetchBytes = p.queued, p.pending, p.fetch
	if n := kind.FlushEvents(); n > 0 {
		l.FlushEvents = min(l.FlushEvents, n)
	}
	return l
}

// leastShare lets each partition remember something, however many there are.
const leastShare = 64 << 10

// accountsShare is what one of the partitions may remember.
func (p *memoryPlan) accountsShare(partitions int) int {
	return max(leastShare, p.accounts/max(1, partitions))
}
