//go:build faults

package faulttest

import (
	"fmt"
	"slices"
	"time"

	"projector/internal/failpoint"
)

// crashes returns the faults that kill, freeze or stop the program's processes.
func crashes() []fault {
	return []fault{
		{name: "kill -9 after the DLQ acknowledgement", quick: true, setting: alone, strike: killAt(failpoint.DLQAcknowledged, 4)},
		{name: "kill -9 before the database commit", quick: true, setting: alone, strike: killAt(failpoint.BeforeCommit, 6)},
		{name: "kill -9 after the database commit", quick: true, setting: alone, strike: killAt(failpoint.AfterCommit, 6)},
		{name: "kill -9 before the offset commit", setting: alone, strike: killAt(failpoint.BeforeOffsetCommit, 2)},
		{name: "kill -9 after the offset commit", setting: alone, strike: killAt(failpoint.AfterOffsetCommit, 2)},
		{name: "kill -9 at random, of 3 replicas", quick: true, strike: killAtRandom, setting: setting{
			replicas: 3, partitions: 6, session: "1s",
			records: scaled(40_000, 10_000), during: lasting(100*time.Second, 20*time.Second),
		}},
		{name: "frozen past the session, thawed", quick: true, strike: frozenReplica},
		{name: "frozen in mid-transaction, thawed", strike: frozenInTransaction, setting: setting{replicas: 1}},
		{name: "stopped while a join waits for a frozen member", strike: stoppedWhileJoining, setting: setting{replicas: 1, session: "8s"}},
		{name: "replicas 1→5→1, everything twice", strike: replicasComeAndGo, setting: setting{
			replicas: 1, partitions: 6, again: true, records: 12_000, during: 40 * time.Second,
		}},
	}
}

// alone is the setting for faults that start their own replicas, so the scene starts none.
var alone = setting{replicas: -1, during: 30 * time.Second}

// killAt starts one replica after the other. A failpoint kills each of them at one of the first n
// times that the replica reaches it. The last replica has no failpoint.
func killAt(point string, n int) func(*scene) int {
	return func(s *scene) (hits int) {
		for range scaled(5, 2) {
			r := s.launch(fmt.Sprintf("%s=kill@%d", point, 1+s.rnd.IntN(n)))
			hits += s.dies(r)
			s.evict()
		}
		s.healed()
		s.launch("")
		return hits
	}
}

// killAtRandom kills random replicas at random moments and replaces them. About half of the killed
// replicas are not evicted from the group, so the group notices their end only when their session
// times out.
func killAtRandom(s *scene) (hits int) {
	for range scaled(50, 8) {
		s.await("progress", s.moved())
		s.pause(s.between(0, 300*time.Millisecond))
		working := slices.DeleteFunc(slices.Clone(s.replicas), func(r *replica) bool { return r.assigned()() != "" })
		if len(working) == 0 {
			working = s.replicas
		}
		s.kill(working[s.rnd.IntN(len(working))])
		if s.rnd.IntN(2) == 0 {
			s.evict()
		}
		hits++
		s.launch("")
	}
	return hits
}

// frozenReplica freezes a replica, as a hypervisor can do, until another replica owns all
// partitions. Then the frozen replica continues with its outdated state.
func frozenReplica(s *scene) (taken int) {
	s.await("both have partitions", s.owned(2))
	before := s.owners()
	frozen := s.replicas[0]
	s.freeze(frozen)
	s.await("the other has taken over", s.owned(1))
	for p, owner := range s.owners() {
		if owner != before[p] {
			taken++
		}
	}
	s.awaitUnderLoad("all partitions move", s.moves(0, 1, 2, 3))
	frozen.thaw()
	return taken
}

// The method owned returns a check for await. It succeeds when all partitions have owners and the
// given number of processes own them.
func (s *scene) owned(by int) func() string {
	return func() string {
		owners := s.owners()
		distinct := map[string]bool{}
		for _, owner := range owners {
			distinct[owner] = true
		}
		if len(distinct) != by || len(owners) != int(s.setting.partitions) {
			return fmt.Sprintf("owners %v", owners)
		}
		return ""
	}
}

// frozenInTransaction freezes a replica after its writes and before its COMMIT. The replica then
// holds the locks of the position and of the rows that it has written.
func frozenInTransaction(s *scene) int {
	s.kill(s.replicas[0])
	s.evict()
	frozen := s.launch(fmt.Sprintf("%s=freeze@%d", failpoint.BeforeCommit, 1+s.rnd.IntN(6)))
	s.awaitUnderLoad("frozen", func() string {
		if frozen.hit() == 0 {
			return "still running"
		}
		return ""
	})
	before := s.owners()
	s.launch("")
	s.await("the other has taken over", func() string {
		for p, owner := range s.owners() {
			if owner == before[p] {
				return fmt.Sprintf("partition %d is still owned by %s", p, owner)
			}
		}
		return ""
	})
	s.awaitUnderLoad("all partitions move", s.moves(0, 1, 2, 3))
	frozen.thaw()
	return frozen.hit()
}

// stoppedWhileJoining terminates a replica while it joins the group. The join cannot finish because
// another member is frozen.
func stoppedWhileJoining(s *scene) int {
	frozen := s.replicas[0]
	s.freeze(frozen)
	joining := s.launch("")
	s.await("the group waits", func() string {
		groups, err := s.admin.DescribeGroups(s.t.Context(), s.reader.Group)
		if state := groups[s.reader.Group].State; err != nil || state != "PreparingRebalance" {
			return fmt.Sprintf("%s, error %v", state, err)
		}
		return ""
	})
	joining.Terminate()
	s.remove(joining)
	frozen.thaw()
	return 1
}

// replicasComeAndGo scales up and down quickly, as an autoscaler can.
func replicasComeAndGo(s *scene) (hits int) {
	const every = 10 * time.Second
	for range 2 {
		for len(s.replicas) < 5 {
			s.launch("")
		}
		s.await("several have partitions", s.ownedByMore)
		hits++
		s.pause(every)
		for len(s.replicas) > 1 {
			r := s.replicas[0]
			r.Terminate()
			s.remove(r)
		}
		s.await("one has them all", s.owned(1))
		hits++
	}
	return hits
}

func (s *scene) ownedByMore() string {
	if s.owned(5)() == "" || s.owned(4)() == "" {
		return ""
	}
	return fmt.Sprintf("owners %v", s.owners())
}
