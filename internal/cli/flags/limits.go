package flags

import (
	"bufio"
	"bytes"
	"io/fs"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"projector/internal/cli/exit"
	"projector/internal/consumer"
	"projector/readmodel"
)

// LimitFlags limit the memory of the process.
type LimitFlags struct {
	MemoryLimit *Size `json:"-" env:"MEMORY_LIMIT" placeholder:"SIZE" group:"Projection" help:"Resident memory the process stays under, e.g. 512MiB or 1GiB. Default: three quarters of the container's memory limit, 512MiB where there is none. With more memory, writes are fewer and larger, and more accounts are remembered."`
}

const (
	// leastMemory is the smallest limit with which the program works.
	leastMemory Size = 96 << 20
	// standardMemory is the limit if neither the flag nor the container sets one.
	standardMemory Size = 512 << 20
)

// Resident returns the limit of the flag or, without the flag, three quarters of the container's
// limit. Without both it returns standardMemory. The last quarter is for memory of the kernel that
// counts for the container, such as sockets.
func (f *LimitFlags) Resident() Size {
	if f.MemoryLimit != nil {
		return *f.MemoryLimit
	}
	return limitWithin(containerLimit(os.DirFS("/")))
}

// limitWithin returns the memory limit in a container with the given limit. The value 0 means that
// the container has no limit.
func limitWithin(container int64) Size {
	if container == 0 {
		return standardMemory
	}
	return max(leastMemory, Size(container/4*3))
}

// CheckLimit returns a usage error if --memory-limit is set and lower than leastMemory.
func (f *LimitFlags) CheckLimit() error {
	if f.MemoryLimit != nil && *f.MemoryLimit < leastMemory {
		return exit.Usagef("--memory-limit (MEMORY_LIMIT): must be at least %s", leastMemory)
	}
	return nil
}

// MemoryPlan divides --memory-limit into shares, see docs/decisions/0006. The shares that a process
// uses at the same time sum up to less than two thirds of the limit, because the garbage collector
// needs space.
type MemoryPlan struct {
	heap         int64 // the garbage collector's soft limit
	accounts     int   // all accounts in memory
	VersionIndex int   // part of accounts, used while a topic is read again, see balance.VersionReader
	queued       int   // fetched records that are not processed yet; twice as much in the worst case
	pending      int   // dead letters, parked events and rows that wait for a write
	fetch        int   // size of one fetch; two may run at a time
	Ledger       int   // the accounts of a ledger, in commands without a consumer
}

const (
	// outsideHeap is resident memory that is not in the heap: the program's code and the memory of
	// its threads. The measured value is 29 MiB.
	outsideHeap = 32 << 20
	// gcPercent is the value for GOGC: the garbage that may accumulate, in percent of the live
	// heap. Accounts contain no pointers, so a collection is cheap. The value 30 used 1 to 2 % more
	// CPU than Go's default of 100.
	gcPercent = 30
	// unusedBytes is the size of an allocation that is never written, so it is never resident. It
	// makes the live heap look larger, so that a small heap is collected only after about 10 MiB of
	// garbage. At 1,000 events/s the program used 16 to 17 % of a core without it, and 12 to 13 %
	// with it.
	unusedBytes = 32 << 20
)

// ShareMemory divides a limit into shares.
func ShareMemory(limit Size) MemoryPlan {
	l := int(limit - outsideHeap)
	return MemoryPlan{
		heap:         int64(l - l/20), // with a margin, because it is a soft limit
		accounts:     l * 2 / 5,
		VersionIndex: l / 8,
		queued:       l / 32,
		pending:      l / 12,
		fetch:        l / 128,
		Ledger:       l * 3 / 5,
	}
}

// ShareMemoryWith divides a limit into shares if other parts of the process use the given amount of
// memory. It divides the rest of the memory. The rest counts as at least two fifths of what would
// be divided without these parts.
func ShareMemoryWith(others, limit Size) MemoryPlan {
	l := limit - outsideHeap
	plan := ShareMemory(outsideHeap + max(l*2/5, l-others))
	plan.heap = ShareMemory(limit).heap
	return plan
}

// Apply configures the garbage collector with the plan. The allocation of size unusedBytes is freed
// after the function release is called. The variables GOMEMLIMIT and GOGC take precedence.
func (p *MemoryPlan) Apply() (release func()) {
	var unused []byte
	if os.Getenv("GOGC") == "" {
		unused = make([]byte, unusedBytes)
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(p.heap + int64(len(unused)))
	}
	return func() { runtime.KeepAlive(unused) }
}

// Limits returns the limits of a consumer for this projection. In addition to these limits, a whole
// batch of up to batchBytes (--max-batch-bytes) is in memory.
func (p *MemoryPlan) Limits(kind readmodel.Definition, batchBytes int) consumer.Limits {
	l := consumer.DefaultLimits()
	l.BatchBytes = batchBytes
	l.QueueBytes, l.FlushBytes, l.FetchBytes = p.queued, p.pending, p.fetch
	if n := kind.FlushEvents(); n > 0 {
		l.FlushEvents = min(l.FlushEvents, n)
	}
	return l
}

// leastShare is the smallest share of one partition, even if there are many partitions.
const leastShare = 64 << 10

// AccountsShare returns the memory for accounts of one partition, in bytes.
func (p *MemoryPlan) AccountsShare(partitions int) int {
	return max(leastShare, p.accounts/max(1, partitions))
}

// noLimit is above any real memory size. Control groups version 1 report such a large number if there
// is no limit.
const noLimit = 1 << 60

// containerLimit returns the memory limit of this process in bytes. This is the lowest limit of its
// control group and all parent groups. The result is 0 if there is no limit or no limit can be
// read. The argument root is the root of the file system.
func containerLimit(root fs.FS) int64 {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil { // not Linux
		return 0
	}
	var least int64
	for lines := bufio.NewScanner(bytes.NewReader(groups)); lines.Scan(); {
		// A line is "0::/a/b" in version 2 of control groups, and "4:memory:/a/b" in version 1.
		parts := strings.SplitN(lines.Text(), ":", 3)
		if len(parts) < 3 {
			continue
		}
		mount, file := "sys/fs/cgroup", "memory.max"
		if controllers := strings.Split(parts[1], ","); slices.Contains(controllers, "memory") {
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		} else if parts[1] != "" {
			continue
		}
		// In a container the path may be a path of the host that does not exist here. The root group
		// always exists, so parents are tried too.
		for group := path.Clean("/" + parts[2]); ; group = path.Dir(group) {
			if n := limitIn(root, path.Join(mount, group, file)); n > 0 && (least == 0 || n < least) {
				least = n
			}
			if group == "/" {
				break
			}
		}
	}
	return least
}

// limitIn returns the limit in a file, or 0 if there is none.
func limitIn(root fs.FS, name string) int64 {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // "max" is no number
	if err != nil || n >= noLimit {
		return 0
	}
	return n
}

// ParkFlags limit the parked events of each account.
type ParkFlags struct {
	ParkLimit int64 `env:"PARK_LIMIT" default:"10000" placeholder:"N" group:"Projection" help:"Events per account stored in the database for a gap (default 10000). Those beyond are read again when it is their turn."`
	ParkBytes Size  `env:"PARK_BYTES" default:"64MiB" placeholder:"SIZE" group:"Projection" help:"Size of the events per account stored in the database for a gap: keys, values and headers (default 64MiB)."`
}

// CheckPark refuses invalid limits.
func (f *ParkFlags) CheckPark() error {
	switch {
	case f.ParkLimit < 0:
		return exit.Usagef("--park-limit (PARK_LIMIT): must not be negative")
	case f.ParkBytes <= 0:
		return exit.Usagef("--park-bytes (PARK_BYTES): must be more than 0; --park-limit=0 parks nothing but the event that makes the gap")
	}
	return nil
}
