package pace

import (
	"context"
	"os"
	"runtime"
	"syscall"
	"time"
)

const (
	// usageEvery is the interval at which the CPU use of the program is measured. A burst of work
	// is limited to one processor for at most two intervals.
	usageEvery = 200 * time.Millisecond
	// A measurement is calm if the CPU use is at most calmUsage. Above busyUsage, all processors
	// are used. Both are shares of one processor.
	calmUsage = 0.3
	busyUsage = 0.5
	// calmFor is how many calm measurements must follow each other before one processor is enough.
	// This takes 5 s.
	calmFor = 25
)

// Processors decides whether one processor is enough for the program. On several processors, each
// small batch would wake threads that have no work.
type Processors struct {
	calm int // calm measurements in a row
	one  bool
}

// One receives the CPU use between the last call and this call, as a share of one processor. It
// reports whether one processor is enough from now on.
func (p *Processors) One(usage float64) bool {
	switch {
	case usage > busyUsage:
		p.calm, p.one = 0, false
	case usage > calmUsage:
		p.calm = 0
	default:
		p.calm++
		p.one = p.one || p.calm >= calmFor
	}
	return p.one
}

// SaveProcessors lets the program run on one processor while that is enough, until ctx ends. It
// does nothing if the operator has set GOMAXPROCS or there is only one processor.
func SaveProcessors(ctx context.Context) {
	if os.Getenv("GOMAXPROCS") != "" || runtime.GOMAXPROCS(0) == 1 {
		return
	}
	defer runtime.SetDefaultGOMAXPROCS()
	ticker := time.NewTicker(usageEvery)
	defer ticker.Stop()
	var p Processors
	at, used := time.Now(), usedTime()
	for one := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now, total := time.Now(), usedTime()
		before := one
		one = p.One(float64(total-used) / float64(now.Sub(at)))
		at, used = now, total
		switch {
		case one && !before:
			runtime.GOMAXPROCS(1)
		case before && !one:
			runtime.SetDefaultGOMAXPROCS()
		}
	}
}

func usedTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
