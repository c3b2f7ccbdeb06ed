package flags

import (
	"os"
	"runtime"
	"runtime/debug"

	"projector/internal/cli/exit"
	"projector/internal/consumer"
	"projector/readmodel"
)

// LimitFlags bound the process.
type LimitFlags struct {
	MemoryLimit *Size `json:"-" env:"MEMORY_LIMIT" placeholder:"SIZE" group:"Projection" help:"Resident memory the process stays under, e.g. 512MiB or 1GiB. Default: three quarters of the container's memory limit, 512MiB where there is none. With more memory, writes are fewer and larger, and more accounts are remembered."`
}

const (
	// leastMemory is what the program needs to work at all.
	leastMemory Size = 96 << 20
	// standardMemory is for a machine that sets no limit.
	standardMemory Size = 512 << 20
)

// Resident is the limit that was given, or else follows from the container's. A quarter of
// that is left to what the kernel counts with the process, such as sockets.
func (f *LimitFlags) Resident() Size {
	if f.MemoryLimit != nil {
		return *f.MemoryLimit
	}
	return limitWithin(containerLimit(os.DirFS("/")))
}

// limitWithin is the limit in a container of so many bytes; 0: it has no limit.
func limitWithin(container int64) Size {
	if container == 0 {
		return standardMemory
	}
	return max(leastMemory, Size(container/4*3))
}

// CheckLimit refuses a limit the program cannot work in.
func (f *LimitFlags) CheckLimit() error {
	if f.MemoryLimit != nil && *f.MemoryLimit < leastMemory {
		return exit.Usagef("--memory-limit (MEMORY_LIMIT): must be at least %s", leastMemory)
	}
	return nil
}

// MemoryPlan is how --memory-limit is shared out: see docs/decisions/0006. Together
// the shares are less than two thirds of it, because the garbage collector needs room.
type MemoryPlan struct {
	heap         int64 // the garbage collector's soft limit
	accounts     int   // all accounts in memory
	VersionIndex int   // out of accounts, while a topic comes again: see readmodel.VersionReader
	queued       int   // records fetched and not decided; twice that at worst
	pending      int   // dead letters, parked events and rows to be written
	fetch        int   // what one fetch of two may bring
	Ledger       int   // the accounts of a ledger, in a command that holds nothing else
}

const (
	// outsideHeap is what is resident and not the garbage collector's: the program's
	// text and what the kernel keeps for its threads. Measured: 29 MiB.
	outsideHeap = 32 << 20
	// gcPercent is how much garbage there may be for what is in use. Accounts hold
	// no pointers, so a collection costs little: at 30 it took 1 to 2 % more CPU than at
	// Go's 100.
	gcPercent = 30
	// floor is a heap that is never used, and so never resident: while little is in use,
	// the collector counts it in and waits for 10 MiB of garbage. Without it a steady
	// 1,000 events/s took 16 to 17 % of a core, with collections as rare as this 12 to 13.
	floor = 32 << 20
)

// ShareMemory shares out a limit.
func ShareMemory(limit Size) MemoryPlan {
	l := int(limit - outsideHeap)
	return MemoryPlan{
		heap:         int64(l - l/20), // a soft limit, and so with a margin
		accounts:     l * 2 / 5,
		VersionIndex: l / 8,
		queued:       l / 32,
		pending:      l / 12,
		fetch:        l / 128,
		Ledger:       l * 3 / 5,
	}
}

// ShareMemoryWith shares out what is left when others use so much, and at least two fifths of the limit.
func ShareMemoryWith(others, limit Size) MemoryPlan {
	l := limit - outsideHeap
	plan := ShareMemory(outsideHeap + max(l*2/5, l-others))
	plan.heap = ShareMemory(limit).heap
	return plan
}

// Apply sets the garbage collector by the plan, unless GOMEMLIMIT and GOGC say
// otherwise, until release is called.
func (p *MemoryPlan) Apply() (release func()) {
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

// Limits are those of the consumer, narrowed by what the projection wants. A batch of
// batchBytes, by --max-batch-bytes, comes on top, for it is in memory as a whole.
func (p *MemoryPlan) Limits(kind readmodel.Definition, batchBytes int) consumer.Limits {
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

// AccountsShare is what one of the partitions may remember.
func (p *MemoryPlan) AccountsShare(partitions int) int {
	return max(leastShare, p.accounts/max(1, partitions))
}
