package main

import (
	"context"
	"os"
	"runtime"
	"time"
)

// cpuUse is who used the processors during a run, in seconds.
type cpuUse struct {
	Subject  float64
	Postgres float64 // without the session that watches
	Broker   float64 // real, or this process when the broker is inside it
	Other    float64 // nobody who takes part: what disturbed the run
	Steal    float64 // kept back by the hypervisor
}

// meter reads CPU at the beginning and the end of a run.
type meter struct {
	subjects []int // process ids; none before they are started
	postgres int   // postmaster
	watcher  int   // process id of the session that watches; 0: none
	broker   int   // process id; 0: in this process

	began  time.Time
	before cpuUse
	busy   float64
	own    float64
}

func (m *meter) begin() {
	m.began, m.before, m.busy, m.own = time.Now(), m.read(), machineBusy(), processCPU(os.Getpid())
	_, m.before.Steal = machineCPU()
}

// end answers the use since begin, and whether the run was disturbed.
func (m *meter) end() (use cpuUse, disturbed bool) {
	wall := time.Since(m.began).Seconds()
	now := m.read()
	_, steal := machineCPU()
	use = cpuUse{
		Subject:  now.Subject - m.before.Subject,
		Postgres: now.Postgres - m.before.Postgres,
		Broker:   now.Broker - m.before.Broker,
		Steal:    steal - m.before.Steal,
	}
	own := processCPU(os.Getpid()) - m.own
	taken := use.Subject + use.Postgres + own
	if m.broker != 0 {
		taken += use.Broker
	}
	watching := now.Other - m.before.Other
	use.Other = max(0, machineBusy()-m.busy-taken-watching)
	return use, use.Other+use.Steal > disturbedFrom(wall)
}

// disturbedFrom is how many CPU seconds of others, or kept back, disturb a run: 4 % of
// all processors and half a second, which is what the peers' own summary allows.
func disturbedFrom(wall float64) float64 { return 0.04*float64(runtime.NumCPU())*wall + 0.5 }

// read answers absolute values; Other is the watching session.
func (m *meter) read() cpuUse {
	var u cpuUse
	for _, pid := range m.subjects {
		u.Subject += processCPU(pid)
	}
	if m.watcher != 0 {
		u.Other = processCPU(m.watcher)
	}
	u.Postgres = treeCPU(m.postgres) - u.Other
	if m.broker != 0 {
		u.Broker = processCPU(m.broker)
	} else {
		u.Broker = processCPU(os.Getpid())
	}
	return u
}

func machineBusy() float64 {
	busy, _ := machineCPU()
	return busy
}

// awaitQuiet waits until the machine idles for a second, at most for limit.
func awaitQuiet(ctx context.Context, limit time.Duration) {
	for end := time.Now().Add(limit); time.Now().Before(end); {
		before := machineBusy()
		if !pause(ctx, time.Second) || machineBusy()-before < 0.1 {
			return
		}
	}
}

// pause waits; false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
