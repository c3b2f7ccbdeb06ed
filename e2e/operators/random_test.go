package operators_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"projector/e2e/wait"
	"projector/internal/devstack"
)

// drawn is a step and its weight in the random choice.
type drawn struct {
	name   string
	weight int
	do     func(*stage)
	needs  needs
}

// needs are conditions of a step.
type needs uint8

const (
	// alone means that sendAlongside sends no events during the step.
	alone needs = 1 << iota
	// healed means that no account heals by itself when the step begins, because the result of the
	// step would depend on it.
	healed
)

func (s *stage) anyReader() *reader { return pick(s, s.readers) }

var steps = []drawn{
	{"rewind", 8, func(s *stage) { s.rewind(s.anyReader()) }, 0},
	{"pause", 10, func(s *stage) { s.pauses(s.anyReader()) }, alone | healed},
	{"skip unread", 4, func(s *stage) { s.skipUnread(s.anyReader()) }, alone},
	{"rebuild", 12, func(s *stage) { s.rebuild(s.anyReader()) }, 0},
	{"rebuild and repair", 6, (*stage).together, healed},
	{"two operators", 8, (*stage).atOnce, alone | healed},
	{"rebuild twice", 3, func(s *stage) { s.rebuildTwice(s.anyReader()) }, alone | healed},
	{"look", 5, (*stage).look, alone | healed},
	{"damage", 6, func(s *stage) { s.damage(s.anyReader()) }, 0},
	{"new text", 4, (*stage).newText, alone | healed},
	{"new mapping", 5, (*stage).newMapping, alone | healed},
	{"new group", 3, func(s *stage) { s.newGroup(s.anyReader()) }, alone},
	{"replay", 10, func(s *stage) { s.replay(s.anyReader()) }, healed},
	{"correct", 14, func(s *stage) { s.correct(s.anyReader()) }, healed},
	{"discard", 8, func(s *stage) { s.discard(s.anyReader()) }, healed},
	{"take a discard back", 6, func(s *stage) { s.takeBack(s.anyReader()) }, healed},
	{"publish again", 5, func(s *stage) { s.publishAgain(s.anyReader()) }, alone},
	{"skip", 8, func(s *stage) { s.skip(s.anyOrdered()) }, healed},
	{"unskip", 6, func(s *stage) { s.unskip(s.anyOrdered()) }, healed},
	{"open", 5, func(s *stage) { s.open(s.readers[0]) }, healed},
	{"fetch", 8, func(s *stage) { s.fetch(s.readers[0]) }, healed},
	{"prune", 4, func(s *stage) {
		if s.pruning {
			s.prune(nil)
		}
	}, 0},
	{"refuse", 5, (*stage).refuse, alone | healed},
	{"second instance", 5, func(s *stage) { s.secondInstance(s.anyReader()) }, 0},
	{"kill", 4, func(s *stage) { s.kill(s.anyReader()) }, 0},
	{"restart", 3, func(s *stage) { s.restart(s.anyReader()) }, 0},
	{"freeze", 3, func(s *stage) { s.freeze(s.anyReader()) }, alone},
	{"refused by Kafka", 5, func(s *stage) { s.refusedByKafka(s.anyReader()) }, alone},
	{"cut", 8, (*stage).cut, alone},
	{"partition", 2, (*stage).addPartition, alone},
	{"retention", 3, (*stage).retention, alone},
	{"migrate", 3, (*stage).switchFourEyes, 0},
	{"restore", 7, (*stage).restore, alone | healed},
	{"restart of PostgreSQL", 2, func(s *stage) { s.failover(devstack.Fast) }, alone},
	{"crash of PostgreSQL", 2, func(s *stage) { s.failover(devstack.Immediate) }, alone},
}

// cut makes the consumers' connections to the database fail in one of several ways while events arrive.
func (s *stage) cut() {
	s.t.Helper()
	switch s.rnd.IntN(4) {
	case 0:
		s.note("connections are cut")
		for range 5 {
			s.proxy.SwitchTo(s.cluster.Addr())
			s.producer.produceCalm(2)
		}
	case 1:
		s.note("connections are refused")
		s.proxy.SwitchTo("")
		s.producer.produce(60) // more than one small batch
		s.proxy.SwitchTo(s.cluster.Addr())
	case 2:
		s.note("replies to COMMIT are lost")
		n := 0
		s.proxy.LoseReplies(func() bool { n++; return n%3 == 0 })
		for range 5 {
			s.producer.produce(4)
			wait.Pass(s.t.Context(), 100*time.Millisecond)
		}
		s.proxy.LoseReplies(nil)
		for _, r := range s.readers {
			r.killed = true // what was written with a lost reply may not be committed to Kafka
		}
	default:
		s.note("connections are slow")
		s.proxy.Slow(50*time.Millisecond, 0)
		s.producer.produce(20)
		for _, r := range s.readers {
			s.arrived(r)
		}
		s.proxy.Slow(0, 0)
	}
	s.count("connections", true)
}

// failover stops and restarts PostgreSQL.
func (s *stage) failover(mode devstack.StopMode) {
	s.t.Helper()
	s.note("PostgreSQL is stopped (%v) and started", mode)
	s.producer.produce(1)
	if err := s.cluster.Stop(s.t.Context(), mode); err != nil {
		s.t.Fatal(err)
	}
	if err := s.cluster.Start(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.db.Reset()
	s.bank.Reset()
	s.count("restart of PostgreSQL", true)
}

// step draws one of the steps by its weight and runs it.
func (s *stage) step() {
	s.t.Helper()
	d := s.drawn()
	s.note("== %s", d.name)
	for _, r := range s.readers {
		if d.needs&healed != 0 && r.ordered() != nil {
			s.exact(r, "before "+d.name)
		}
	}
	s.between = d.needs == healed
	defer func() { s.between = false }()
	if d.needs&alone != 0 || s.rnd.IntN(2) == 0 {
		d.do(s)
	} else {
		s.producer.sendAlongside(func() { d.do(s) })
	}
}

func (s *stage) drawn() *drawn {
	total := 0
	for _, d := range steps {
		total += d.weight
	}
	n := s.rnd.IntN(total)
	for i := range steps {
		if n -= steps[i].weight; n < 0 {
			return &steps[i]
		}
	}
	panic("cannot happen: the weights have a sum above n")
}

// play runs n random steps and then a rebuild of every projection.
func (s *stage) play(n int) {
	s.t.Helper()
	s.producer.produce(30)
	s.settled("at the start")
	for i := range n {
		s.note("-- step %d", i)
		s.late = i >= n*2/3
		s.producer.produce(1 + s.rnd.IntN(6))
		for _, r := range s.readers {
			s.arrived(r)
		}
		s.step()
		s.settled(fmt.Sprint("after step ", i))
		if s.t.Failed() {
			return
		}
	}
	s.note("-- the end")
	for _, r := range s.readers {
		s.rebuild(r)
	}
	s.settled("rebuilt at the end")
	if p := s.run("audit", "verify", "--output=json"); !p.done() {
		s.t.Errorf("audit verify: %s", p.stderr)
	}
	s.verify()
	for _, r := range s.readers {
		s.statuses(r)
	}
	if s.rnd.IntN(3) == 0 {
		s.recreate()
	}
	for _, r := range s.readers {
		r.process.Terminate()
		if r.second != nil {
			r.second.Terminate()
		}
	}
}

// verify compares the balances with a ledger that has those of the oracle.
func (s *stage) verify() {
	s.t.Helper()
	ledger := "account_id,version,balance\n"
	for id, a := range s.readers[0].ordered().accounts {
		if a.version > 0 {
			ledger += fmt.Sprintf("%s,%d,%s\n", id, a.version, money(a.balance))
		}
	}
	p := s.run("verify", "--ledger="+s.file("verified.csv", ledger), "--min-compared=1", "--output=json")
	for _, result := range lines[struct {
		Differences []struct {
			ID   string `json:"account_id"`
			Kind string
		}
	}](s, p.stdout) {
		for _, d := range result.Differences {
			if a := s.readers[0].ordered().account(d.ID); d.Kind != "unknown" || a.version > 0 || !a.waits() { // an account without a row
				s.t.Errorf("verify: %s is %s", d.ID, d.Kind)
			}
		}
	}
}

// statuses checks that the statuses of dead letters fit the state of their accounts.
func (s *stage) statuses(r *reader) {
	s.t.Helper()
	o := r.ordered()
	if o == nil {
		return
	}
	p := s.run(append([]string{"dlq", "list"}, s.readerFlags("dlq list", r)...)...)
	if !p.done() {
		s.t.Errorf("dlq list: %s", p.stderr)
	}
	for _, l := range lines[letter](s, p.stdout) {
		if l.AccountID == nil || l.ReceivedVersion == nil {
			continue
		}
		a, want := o.account(*l.AccountID), []string{"open", "ready"}
		switch {
		case o.discarded[place{l.Partition, l.Offset}]:
			want = []string{"discarded"}
		case *l.ReceivedVersion <= a.version:
			want = []string{"resolved"}
		case *l.ReceivedVersion > a.version+1:
			want = []string{"waiting"}
		}
		if l.Class != "version_conflict" && !slices.Contains(want, l.Status) {
			s.t.Errorf("%s: dead letter %d/%d of %s, version %d, is %s, want %v: the account is at %d",
				r.name, l.Partition, l.Offset, *l.AccountID, *l.ReceivedVersion, l.Status, want, a.version)
		}
	}
}

// report returns how often each command succeeded and how often it was refused.
func (s *stage) report() string {
	var text []string
	for _, kind := range slices.Sorted(maps.Keys(s.tally)) {
		text = append(text, fmt.Sprintf("%s %d/%d", kind, s.tally[kind].done, s.tally[kind].refused))
	}
	return strings.Join(text, ", ")
}

// fixed holds the seeds that a run of the suite uses: all of them on a real Kafka, else the first one.
var fixed = []uint64{11, 16, 19}

const stepsEach = 12

// TestOperatorsAtRandom runs with fixed seeds, or with PROJECTOR_TEST_SEED.
func TestOperatorsAtRandom(t *testing.T) {
	seeds, n := fixed, stepsEach
	if os.Getenv("PROJECTOR_TEST_KAFKA") != "real" {
		seeds = fixed[:1]
	}
	if text := os.Getenv("PROJECTOR_TEST_SEED"); text != "" {
		seeds = []uint64{must(strconv.ParseUint(text, 10, 64))(t)}
	}
	if text := os.Getenv("PROJECTOR_TEST_STEPS"); text != "" {
		n = must(strconv.Atoi(text))(t)
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, seed)
			s.play(n)
			t.Logf("seed %d: done/refused: %s", seed, s.report())
		})
	}
}
