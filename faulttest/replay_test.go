//go:build faults

package faulttest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"projector/e2e/wait"
	"projector/internal/testbank"
)

// repairLimit is the longest time that a repair may stop a partition. In CI it is longer, because
// CI's machine is slow.
var repairLimit = lasting(5*time.Second, 15*time.Second)

// unparked is a setting with --park-limit=0. An event that arrives too early is then only in the
// DLQ topic and waits for a replay by an operator. The oracle applies this event without a replay,
// so the test compares after the replay.
var unparked = setting{
	clean: true, flags: []string{"--park-limit=0"},
	records: scaled(15_000, 4000), during: lasting(time.Minute, 16*time.Second),
}

// replays returns the faults in which dead letters are replayed while events arrive.
func replays() []fault {
	return []fault{
		{name: "dlq replay of many accounts, under load", quick: true, setting: unparked, strike: replayMany},
		{name: "dlq replay of a long queue, under load", strike: replayLongQueue},
	}
}

// The method early returns accounts with three events, of which the third arrives before the
// second. Three quarters of the accounts are in partition 0.
func (s *scene) early(accounts int) (names []string, records []testbank.Record) {
	prefix := fmt.Sprintf("early-%x-", s.rnd.Uint32())
	for i := range accounts {
		id := fmt.Sprint(prefix, i)
		names = append(names, id)
		for _, version := range []int{1, 3, 2} {
			records = append(records, s.credit(mostly0(i), id, version))
		}
	}
	return names, records
}

// mostly0 returns the partition of the ith account. Three quarters of the accounts are in partition
// 0.
func mostly0(i int) int {
	if i%4 > 0 {
		return 0
	}
	return i / 4
}

func (s *scene) credit(number int, account string, version int) testbank.Record {
	return testbank.Record{
		Partition: int32(number) % s.setting.partitions, Key: []byte(account), Value: []byte(event(account, version, "FundsCredited", good)),
	}
}

// The method replayed waits for the end of a replay and returns how many dead letters it applied.
func (s *scene) replayed(replay *command) int {
	s.t.Helper()
	// The broken events of the scene stay dead letters, so the replay ends with exit status 1.
	status, out := replay.Exit(5*time.Minute), replay.out.String()
	if status != 0 && (status != 1 || !strings.Contains(out, `"result":"poison"`) || strings.Contains(out, `"result":"not_done"`)) {
		s.t.Fatalf("dlq replay exits with %d: %s", status, replay.Log())
	}
	return strings.Count(out, `"result":"applied"`)
}

// replayMany replays the dead letters of many accounts while events of the same accounts arrive.
// For some accounts the consumer applies an event before the replay reaches it. The consumers have
// a slower connection than the replay, because the replay must be faster than the consumers.
func replayMany(s *scene) int {
	s.uncounted = true // an event may be both dead-lettered and applied
	names, records := s.early(sized(40_000, 10_000, 3000))
	s.sendAndAwait(records)
	s.ready()
	var same []testbank.Record
	for _, i := range s.rnd.Perm(len(names)) {
		same = append(same, s.credit(mostly0(i), names[i], 3), s.credit(mostly0(i), names[i], 4))
	}
	s.proxy.Slow(5*time.Millisecond, 64<<20)
	p := s.startPulse()
	replay := s.command("dlq", "replay", "--yes")
	const aSecond = int(time.Second / feedEvery)
	more := s.feedMore(same, 240/aSecond)
	applied := s.replayed(replay)
	p.steady(repairLimit)
	s.proxy.Slow(0, 0)
	more.finish()
	return applied
}

// replayLongQueue replays the one missing event of an account with ten thousand parked events. The
// parked events are also dead letters, so the replay includes them.
func replayLongQueue(s *scene) (applied int) {
	const parked = 10_000
	s.uncounted = true
	s.proxy.Slow(5*time.Millisecond, 64<<20)
	for i := range 2 {
		account := fmt.Sprintf("queue-%x", s.rnd.Uint32())
		records := []testbank.Record{s.credit(i, account, 1)}
		for version := range parked {
			records = append(records, s.credit(i, account, 4+version))
		}
		s.sendAndAwait(append(records, s.credit(i, account, 3), s.credit(i, account, 2)))
		s.ready()
		p := s.startPulse()
		applied += s.replayed(s.command("dlq", "replay", "--yes", "--account="+account))
		p.steady(repairLimit)
	}
	s.proxy.Slow(0, 0)
	return applied
}

// laggingLimit is used instead of repairLimit if the consumer has lag. The consumer of
// TestReplayBesideALaggingConsumer commits only about every eight seconds, even without a repair.
var laggingLimit = 4 * repairLimit

// TestReplayBesideALaggingConsumer replays slowly while a consumer catches up.
func TestReplayBesideALaggingConsumer(t *testing.T) {
	set := unparked
	set.partitions, set.recovers = 1, time.Minute
	s := newScene(t, broker(t), set)
	s.uncounted = true
	s.startWatch()
	r := s.launch("")
	_, records := s.early(4000)
	s.sendAndAwait(records)
	r.Terminate()
	s.remove(r)
	check(t, s.producer.Send(t.Context(), testbank.Generate(testbank.Options{
		Seed: s.seed, Records: sized(500_000, 200_000, 0), Partitions: s.setting.partitions, Accounts: 20_000, Clean: true,
	})))
	began := time.Now()
	replay := s.command("dlq", "replay", "--yes", "--rate=100")
	s.await("the replay is under way", s.count("SELECT least(count(*), 1) FROM dlq_action", 1))
	s.proxy.Slow(100*time.Millisecond, 64<<20)
	moves := s.moves(0)
	s.launch("")
	wait.Until(t, time.Minute, "the consumer moves beside the replay", moves)
	p := s.startPulse()
	applied := s.replayed(replay)
	p.steady(laggingLimit)
	s.proxy.Slow(0, 0)
	struck := time.Since(began)
	s.healed()
	wait.Until(t, s.setting.recovers, "lag 0 after the replay", s.arrived)
	s.exact(t.Name(), applied, struck, time.Since(s.healedAt))
}
