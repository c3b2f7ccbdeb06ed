//go:build faults && soak

package faulttest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"projector/e2e/wait"
	"projector/internal/devstack"
)

// TestSoak runs one scene after the other for the time in PROJECTOR_SOAK. Each scene has several
// random faults.
func TestSoak(t *testing.T) {
	lasts := must(time.ParseDuration(os.Getenv("PROJECTOR_SOAK")))(t)
	until := time.Now().Add(lasts)
	first := seed(t)
	kafka := broker(t)
	for round := uint64(0); round == 0 || time.Now().Before(until); round++ {
		t.Setenv("PROJECTOR_TEST_SEED", fmt.Sprint(first+round))
		if !t.Run(fmt.Sprint("round ", round), func(t *testing.T) { soakRound(t, kafka) }) {
			return
		}
	}
}

// soakRound runs a few faults one after the other in one scene.
func soakRound(t *testing.T, kafka *devstack.Kafka) {
	t.Helper()
	const strikes = 6
	s := newScene(t, kafka, setting{
		replicas: 3, partitions: 6, records: 120_000, during: 6 * time.Minute, recovers: 2 * time.Minute,
	})
	s.startWatch()
	s.startFeed()
	for range s.setting.replicas {
		s.launch("")
	}
	s.await("mid-stream", s.passed(1000))
	began, hits, names := time.Now(), 0, ""
	draw := rand.New(rand.NewPCG(s.seed, 5))
	faults := mixable(kafka)
	for range strikes {
		if s.feed.ended() { // a fault has no effect if no records arrive
			break
		}
		f := faults[draw.IntN(len(faults))]
		t.Logf("striking: %s", f.name)
		for len(s.replicas) < 3 {
			s.launch("")
		}
		for len(s.replicas) > 3 { // with more replicas, some members would have no partition
			r := s.replicas[0]
			r.Terminate()
			s.remove(r)
		}
		s.await("the group has nobody but the replicas", s.onlyReplicas)
		s.await("every partition has an owner", s.ownedByAll)
		for _, r := range s.replicas {
			wait.Until(t, 30*time.Second, "ready", r.Answers("/readyz", 200, ""))
		}
		n := f.strike(s)
		if n == 0 {
			t.Errorf("%s: its window was never hit", f.name)
		}
		hits, names = hits+n, names+"; "+f.name
	}
	struck := time.Since(began)
	s.healed()
	s.feed.finish()
	wait.Until(t, s.setting.recovers, "lag 0 after the faults, unaided", s.arrived)
	s.exact("soak"+names, hits, struck, time.Since(s.healedAt))
}

// onlyReplicas is a check for await. It succeeds when the group is stable and has as many members
// as the scene has replicas. The group then has no killed member.
func (s *scene) onlyReplicas() string {
	groups, err := s.admin.DescribeGroups(s.t.Context(), s.reader.Group)
	if group := groups[s.reader.Group]; err != nil || group.State != "Stable" || len(group.Members) != len(s.replicas) {
		return fmt.Sprintf("%s with %d members, error %v", group.State, len(group.Members), err)
	}
	return ""
}

func (s *scene) ownedByAll() string {
	if owners := s.owners(); len(owners) != int(s.setting.partitions) {
		return fmt.Sprintf("owners %v", owners)
	}
	return ""
}

// The function mixable returns the faults that can happen in any order in one scene. The other
// faults need a separate scene.
func mixable(kafka *devstack.Kafka) []fault {
	own := []string{
		"frozen past the session, thawed", "frozen in mid-transaction, thawed", "role loses UPDATE", "row lock held while a member joins",
		"dlq replay of many accounts, under load",
	}
	all := slices.Concat(crashes(), outages(), replays(), rebuilding(), lostEnds(kafka), brokenBroker(kafka))
	return slices.DeleteFunc(all, func(f fault) bool { return slices.Contains(own, f.name) })
}
