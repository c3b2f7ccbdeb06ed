//go:build faults

package faulttest

import (
	"strings"
	"time"

	"projector/faulttest/pgproxy"
	"projector/internal/devstack"
)

// interrupted returns the faults of PostgreSQL in the middle of commands that change something.
func interrupted() []fault {
	set := unparked
	set.records, set.during, set.recovers = 12_000, 90*time.Second, time.Minute
	return []fault{
		{name: "standby promoted in the middle of commands", setting: set, strike: func(s *scene) int { return s.interrupt(s.failsOver) }},
		{name: "disk full in the middle of commands", setting: set, strike: func(s *scene) int { return s.interrupt(s.fillsUp) }},
	}
}

// interrupt strikes in the middle of a rebuild and of a replay. The function prepare is called before
// each command and returns the strike, whose parameter is the command's way to the database. The
// command may fail, but it must succeed when it is run again.
func (s *scene) interrupt(prepare func() func(*pgproxy.Proxy)) (hits int) {
	s.t.Helper()
	s.uncounted = true // an event may be both dead-lettered and applied
	for _, c := range []struct{ middle, command string }{
		{"SELECT least(count(*), 1) FROM pg_namespace WHERE nspname = 'projector_rebuild'", "rebuild --yes --max-differences=10000"},
		{"SELECT least(count(*), 1) FROM dlq_action WHERE action = 'replay'", "dlq replay --yes --status=ready --rate=500"},
	} {
		_, records := s.early(1500) // each command applies the events that wait
		s.sendAndAwait(records)
		args := strings.Fields(c.command)
		strike := prepare()
		proxy, through, err := pgproxy.ListenBefore(s.url)
		check(s.t, err)
		proxy.Slow(4*time.Millisecond, 64<<20)
		command := s.commandAt(through, args...)
		s.await("the middle of "+c.command, func() string {
			select {
			case <-command.Ended():
				s.t.Fatalf("%s ended before the fault: %s%s", c.command, command.Log(), command.out)
			default:
			}
			return s.count(c.middle, 1)()
		})
		strike(proxy)
		hits++
		status := command.Exit(2 * time.Minute)
		s.t.Logf("%s exits with %d: %s", c.command, status, command.Log())
		if status != 0 && status != 1 {
			s.t.Errorf("%s exits with %d: %s", c.command, status, command.Log())
		}
		check(s.t, proxy.Close())
		again := s.commandAt(s.url, args...)
		if status := again.Exit(2 * time.Minute); status != 0 {
			s.t.Errorf("%s again exits with %d: %s%s", c.command, status, again.Log(), again.out)
		}
	}
	return hits
}

// fillsUp fills the database's disk for a second.
func (s *scene) fillsUp() func(*pgproxy.Proxy) {
	s.t.Helper()
	fill, empty := s.smallDisk()
	return func(*pgproxy.Proxy) {
		fill()
		s.pause(time.Second)
		empty()
		s.healed()
	}
}

// failsOver replaces the server by a standby.
func (s *scene) failsOver() func(*pgproxy.Proxy) {
	s.t.Helper()
	standby := must(s.cluster.Clone(s.t.Context(), devstack.Standby))(s.t)
	s.closeAtEnd(standby)
	s.await("the replication runs", s.count("SELECT count(*) FROM pg_stat_replication", 1))
	return func(command *pgproxy.Proxy) {
		s.watch.pauseOffsetCheck(true) // the last commits may not have reached the standby
		command.SwitchTo("")
		check(s.t, s.cluster.Stop(s.t.Context(), devstack.Immediate))
		check(s.t, standby.Promote(s.t.Context()))
		s.moveTo(standby)
		command.SwitchTo(standby.Addr())
		s.healed()
		s.rewound()
	}
}
