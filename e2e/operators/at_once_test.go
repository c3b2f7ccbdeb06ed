package operators_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"projector/e2e/wait"
)

// command is a command that runs at the same time as another one.
type command struct {
	kind string
	args []string
	// effects returns what the command may have changed, from what it has printed. An effect makes the
	// change in the oracle. It returns false if the oracle cannot make it now.
	effects func(printed) []func() bool
}

// atOnce lets two operators run commands for one account at the same time. The result must be that of
// one command after the other, in any order.
func (s *stage) atOnce() {
	s.t.Helper()
	r := s.anyReader()
	if s.fetching && r == s.readers[0] { // its consumer would be a third operator
		return
	}
	id, letters := s.oneAccount(r)
	if id == "" {
		return
	}
	commands := []*command{s.anyCommand(r, id, letters), s.anyCommand(r, id, letters)}
	if slices.Contains(commands, nil) {
		return
	}
	s.note("at once, for %s:", id)
	before, out := s.undo(r), make([]printed, len(commands))
	var running sync.WaitGroup
	for i, c := range commands {
		running.Go(func() { out[i] = s.draw(c.kind, r, c.args...) })
	}
	running.Wait()
	var orders [][]func() bool
	for _, first := range commands[0].effects(out[0]) {
		for _, second := range commands[1].effects(out[1]) {
			orders = append(orders, []func() bool{first, second}, []func() bool{second, first})
		}
	}
	if !s.follows(r, id, before, orders) {
		s.t.Errorf("%s: %s and %s of %s at once: neither of them can have been the first", r.name, commands[0].kind, commands[1].kind, id)
	}
	s.count("two commands at once", true)
}

// undo returns a function that restores the oracle's present state, with its dead letters.
func (s *stage) undo(r *reader) func() {
	restore := r.oracle.snapshot()
	switch o := r.oracle.(type) {
	case *ordered:
		letters := slices.Clone(o.letters)
		return func() { restore(); o.letters = slices.Clone(letters) }
	case *unordered:
		letters, open, earlier := slices.Clone(o.letters), cloned(o.open), o.earlier
		return func() { restore(); o.letters, o.open, o.earlier = slices.Clone(letters), cloned(open), earlier }
	default:
		s.t.Fatalf("%s has an oracle of an unknown type", r.name)
		return nil
	}
}

func cloned(lists map[string][]string) map[string][]string {
	all := map[string][]string{}
	for key, list := range lists {
		all[key] = slices.Clone(list)
	}
	return all
}

// follows makes the changes of one order in the oracle: the one that gives the rows of the database, or
// else the first possible one, because the rows of an account beyond the park limit are not known yet. It
// returns false if no order is possible.
func (s *stage) follows(r *reader, id string, before func(), orders [][]func() bool) bool {
	s.t.Helper()
	first := -1
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); wait.Pass(s.t.Context(), 100*time.Millisecond) {
		got, err := s.rows(r)
		if err != nil {
			continue
		}
		for i, effects := range orders {
			before()
			if !effects[0]() || !effects[1]() {
				continue
			}
			if want := r.want(); r.ordered() != nil && got[id] == want[id] || different(got, want, s.events) == "" {
				return true
			}
			if first < 0 {
				first = i
			}
		}
		if first < 0 {
			break
		}
	}
	before()
	if first < 0 {
		return false
	}
	return orders[first][0]() && orders[first][1]()
}

// oneAccount returns a busy account that waits, or has dead letters, with its dead letters.
func (s *stage) oneAccount(r *reader) (id string, letters []letter) {
	s.t.Helper()
	if l := s.deadLetter(r, "open,ready,waiting,discarded"); l != nil {
		id = *l.AccountID
	}
	if o := r.ordered(); o != nil && (id == "" || s.rnd.IntN(3) == 0) {
		id = s.waiting(o)
	}
	if id == "" {
		return "", nil
	}
	p := s.run(append([]string{"dlq", "list", "--account=" + id}, s.readerFlags("dlq list", r)...)...)
	return id, lines[letter](s, p.stdout)
}

// anyCommand returns a random command for an account, or nil if there is nothing to do.
func (s *stage) anyCommand(r *reader, id string, letters []letter) *command {
	s.t.Helper()
	open, discarded := []letter{}, []letter{}
	for _, l := range letters {
		switch l.Status {
		case "discarded":
			discarded = append(discarded, l)
		case "open", "ready", "waiting":
			open = append(open, l)
		}
	}
	commands := []func() *command{func() *command { return s.replayOf(r, id) }}
	if len(open) > 0 {
		l := pick(s, open)
		commands = append(commands, func() *command { return s.discardOf(r, l) }, func() *command { return s.correctionOf(r, l) })
	}
	if len(discarded) > 0 {
		l := pick(s, discarded)
		commands = append(commands, func() *command { return s.takingBack(r, l) })
	}
	if o := r.ordered(); o != nil {
		a := o.account(id)
		commands = append(commands, func() *command { return s.skipOf(o, id, a.version+1) })
		if a.before != nil {
			commands = append(commands, func() *command { return s.unskipOf(o, id, a.version) })
		}
	}
	if r == s.readers[0] {
		commands = append(commands, func() *command { return s.fetchOf(r.ordered(), id) }, func() *command { return s.openingOf(r.ordered(), id) })
	}
	return pick(s, commands)()
}

func nothing() bool { return true }

// ifDone returns the effect of a command that changes everything or nothing.
func ifDone(effect func() bool) func(printed) []func() bool {
	return func(p printed) []func() bool {
		if p.done() && !strings.Contains(p.stderr, "discarded 0 dead letters") {
			return []func() bool{effect}
		}
		return []func() bool{nothing}
	}
}

// ifApplied returns the effect of a command that prints whether it has applied the event.
func ifApplied(s *stage, effect func() bool) func(printed) []func() bool {
	return func(p printed) []func() bool {
		for _, line := range lines[struct{ Result *string }](s, p.stdout) {
			if line.Result != nil && (*line.Result == "applied" || *line.Result == "opened") {
				return []func() bool{effect}
			}
		}
		return []func() bool{nothing}
	}
}

func (s *stage) replayOf(r *reader, id string) *command {
	return &command{"dlq replay", []string{"--account=" + id, reason, "--yes", "--max-replays=1000"}, func(p printed) []func() bool {
		replay := func() bool { r.oracle.replay(id); return true }
		switch {
		case p.refused:
			return []func() bool{nothing}
		case p.done():
			return []func() bool{replay}
		default: // an event could not be applied, or was discarded by the other command
			return []func() bool{replay, nothing}
		}
	}}
}

func (s *stage) discardOf(r *reader, l letter) *command {
	return &command{"dlq discard", append(l.flags(), reason, "--yes"), ifDone(func() bool {
		r.oracle.discard(place{l.Partition, l.Offset})
		return true
	})}
}

func (s *stage) takingBack(r *reader, l letter) *command {
	return &command{
		"dlq replay" + takenBack, append(l.flags(), "--status=discarded", reason, "--yes", "--max-replays=1000"),
		ifApplied(s, func() bool { return r.oracle.takeBack(s.records()[l.Partition][l.Offset]) }),
	}
}

func (s *stage) correctionOf(r *reader, l letter) *command {
	s.t.Helper()
	if l.Class == "version_conflict" {
		return nil
	}
	path := filepath.Join(s.t.TempDir(), fmt.Sprint("letters-", s.rnd.IntN(1000), ".jsonl"))
	if p := s.run(append(append([]string{"dlq", "export", "--file=" + path}, l.flags()...), s.readerFlags("dlq export", r)...)...); !p.done() {
		s.t.Fatalf("dlq export fails: %s", p.stderr)
	}
	e := s.right(&l)
	return &command{
		"dlq replay" + corrected,
		[]string{"--from-file=" + s.correctedFile(path, e), reason, "--yes", "--max-replays=1000"},
		ifApplied(s, func() bool { return r.oracle.force(e) }),
	}
}

func (s *stage) skipOf(o *ordered, id string, version int64) *command {
	return &command{"account skip", []string{id, fmt.Sprint("--version=", version), "--nothing-waits", reason, "--yes"}, ifDone(func() bool {
		if o.account(id).version != version-1 {
			return false
		}
		o.skip(id)
		return true
	})}
}

func (s *stage) unskipOf(o *ordered, id string, version int64) *command {
	return &command{"account unskip", []string{id, fmt.Sprint("--version=", version), reason, "--yes"}, ifDone(func() bool {
		if a := o.account(id); a.before == nil || a.version != version {
			return false
		}
		o.unskip(id)
		return true
	})}
}

func (s *stage) fetchOf(o *ordered, id string) *command {
	return &command{"gaps fetch", []string{"--account=" + id, reason, "--yes"}, func(p printed) []func() bool {
		return []func() bool{func() bool {
			for _, line := range lines[struct {
				Version int64
				Result  *string
			}](s, p.stdout) {
				if line.Result != nil && *line.Result == "applied" && !s.producer.fetched(o, id, line.Version) {
					return false
				}
			}
			return true
		}}
	}}
}

func (s *stage) openingOf(o *ordered, id string) *command {
	s.t.Helper()
	at := state{version: o.account(id).version + 1 + s.rnd.Int64N(3), balance: s.rnd.Int64N(100_000), currency: "EUR"}
	ledger := fmt.Sprintf("account_id,version,balance,currency\n%s,%d,%s,EUR\n", id, at.version, money(at.balance))
	return &command{
		"open",
		[]string{"--ledger=" + s.file("ledger.csv", ledger), reason, "--yes"},
		ifApplied(s, func() bool { return o.open(id, at) }),
	}
}
