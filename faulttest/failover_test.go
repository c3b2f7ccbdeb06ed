//go:build faults && failover

package faulttest

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"projector/e2e/wait"
	"projector/internal/devstack"
)

const (
	perSecond      = 1500 // events per second during the failures
	wrongPerSecond = 100  // the part of perSecond that belongs to a stream with wrong events
	// backWithin is the time limit for every partition to reach its end. This time starts when a
	// new leader exists.
	backWithin = 30 * time.Second
	// patient is the time limit for Patroni. The key of a dead leader expires after 20 s.
	patient = 2 * time.Minute
)

// TestFailover makes Patroni fail over and switch over while events arrive. Each of three replicas
// connects to PostgreSQL in another way.
func TestFailover(t *testing.T) {
	kafka := broker(t)
	for name, synchronous := range map[string]bool{"synchronous": true, "asynchronous": false} {
		t.Run(name, func(t *testing.T) {
			f := newFailover(t, kafka, synchronous)
			for range scaled(2, 1) {
				f.changes("leader killed", f.killed)
			}
			if !quick {
				f.changes("switchover", f.switched)
				f.changes("leader cut off from etcd", f.cutOff)
			}
			for _, feed := range f.feeds {
				feed.stop()
			}
			f.s.await("lag 0 at the end", f.s.arrived)
			f.writers.report(t)
			if !synchronous && f.readAgain == 0 {
				t.Error("nothing was lost with an asynchronous leader: this proves nothing")
			}
			f.s.exact("failovers, "+name, f.changed, 0, 0)
		})
	}
}

// The method changes causes one change of the leader and measures the recovery.
func (f *failover) changes(name string, change func(leader *devstack.PatroniNode)) {
	s := f.s
	s.t.Helper()
	s.await("work goes on", s.passed(sum(s.positions())+perSecond))
	s.await("lag 0 before", f.caughtUp())
	leader := f.cluster.Leader(s.t.Context())
	if leader == nil {
		s.t.Fatalf("%s: there is no leader before", name)
	}
	lost := f.readAgainCount()
	if !f.synchronous {
		s.watch.pauseOffsetCheck(true)
	}
	began := time.Now()
	change(leader)
	next := f.cluster.Other(leader)
	wait.Until(s.t, patient, name+": the other node takes writes", f.writers.writes(next))
	elected := time.Since(began)
	s.healed()
	s.db.Reset()
	wait.Until(s.t, backWithin, name+": lag 0 behind the new leader", f.caughtUp())
	back := time.Since(s.healedAt)
	lost = f.readAgainCount() - lost
	report(figure{
		Fault: fmt.Sprintf("%s, %s", name, f.mode()), Hits: 1, ReadAgain: lost, Seed: s.seed,
		Struck: elected.Round(100 * time.Millisecond).String(), Lag0: back.Round(100 * time.Millisecond).String(),
	})
	f.changed++
	f.readAgain += lost
	f.mend(leader)
	wait.Until(s.t, patient, name+": the old leader follows", f.whole)
	if !f.synchronous {
		s.rewound()
	}
}

// The method killed kills the leader's Patroni and PostgreSQL, as the loss of its machine would do.
// Commits that an asynchronous standby has not received are lost.
func (f *failover) killed(leader *devstack.PatroniNode) {
	if !f.synchronous {
		f.holdBack(leader)
	}
	postgres := family(leader.Postmaster())
	signal(f.s, append([]int{leader.Daemon()}, postgres...), syscall.SIGKILL)
	wait.Until(f.s.t, 10*time.Second, "the old leader is gone", func() string {
		for _, pid := range postgres {
			if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil {
				return fmt.Sprintf("process %d is there", pid)
			}
		}
		return ""
	})
}

// holdBack cuts the standby off for some seconds while the leader commits.
func (f *failover) holdBack(leader *devstack.PatroniNode) {
	at := sum(f.s.positions())
	f.ways[devstack.Way{Node: leader.Number()}].SwitchTo("")
	f.s.await("commits that the standby does not hear of", f.s.passed(at+perSecond))
	f.s.await("offsets of them in Kafka", func() string {
		if now := sum(must(f.s.reader.Committed(f.s.t.Context(), f.s.admin))(f.s.t)); now <= at+perSecond/2 {
			return fmt.Sprintf("%d, waiting for more than %d", now, at+perSecond/2)
		}
		return ""
	})
}

func (f *failover) switched(*devstack.PatroniNode) {
	check(f.s.t, f.cluster.Switchover(f.s.t.Context()))
}

// cutOff cuts the leader off from etcd. This leader must stop accepting writes before another node
// becomes leader.
func (f *failover) cutOff(leader *devstack.PatroniNode) {
	f.ways[devstack.Way{Node: leader.Number(), ToEtcd: true}].SwitchTo("")
	began := time.Now()
	wait.Until(f.s.t, patient, "the leader gives up", func() string {
		if f.writers.writes(leader)() == "" {
			return "it takes writes"
		}
		return ""
	})
	f.s.t.Logf("the leader gave up %s after it was cut off", time.Since(began).Round(100*time.Millisecond))
}

// mend restores all connections and starts the killed servers.
func (f *failover) mend(leader *devstack.PatroniNode) {
	for way, proxy := range f.ways {
		proxy.SwitchTo(f.targets[way])
	}
	if leader.Daemon() == 0 {
		check(f.s.t, leader.Start())
	}
}

func (f *failover) mode() string {
	if f.synchronous {
		return "synchronous"
	}
	return "asynchronous"
}

func (f *failover) whole() string {
	if err := f.cluster.Whole(f.s.t.Context()); err != nil {
		return err.Error()
	}
	return ""
}

// steadyWithin is the time limit for applying a record when there is no backlog. Records arrive all
// the time, so the lag counts as 0 if each partition reaches its end within this time.
const steadyWithin = time.Second

// caughtUp returns a check for await. It succeeds when each partition reaches, within steadyWithin,
// the end that it had at the beginning of that time.
func (f *failover) caughtUp() func() string {
	var (
		ends map[int32]int64
		at   time.Time
	)
	return func() string {
		ctx, cancel := f.s.queryContext()
		defer cancel()
		if ends == nil || time.Since(at) > steadyWithin {
			ends, at = f.s.ends(), time.Now()
		}
		positions, err := f.s.reader.Positions(ctx, f.s.db)
		if err != nil {
			return err.Error()
		}
		for p, end := range ends {
			if positions[p] < end {
				return fmt.Sprintf("partition %d is at %d of %d", p, positions[p], end)
			}
		}
		return ""
	}
}
