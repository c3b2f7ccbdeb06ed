package operators_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"projector/e2e/wait"
)

const reason = "--reason=drawn"

// pick returns a random element.
func pick[T any](s *stage, from []T) T { return from[s.rnd.IntN(len(from))] }

func (s *stage) anyOrdered() *reader {
	return pick(s, slices.DeleteFunc(slices.Clone(s.readers), func(r *reader) bool { return r.ordered() == nil }))
}

// moved is a line of the output of `position set`.
type moved struct {
	Partition int
	From      *int64
	To        int64
}

// rewind sets positions back. The oracle then also processes the records from the new positions on
// again.
func (s *stage) rewind(r *reader) {
	s.t.Helper()
	partition := s.rnd.IntN(len(s.log))
	flags := []string{reason, "--yes"}
	switch s.rnd.IntN(3) {
	case 0:
		flags = append(flags, "--all", "--start")
	case 1:
		flags = append(flags, fmt.Sprint("--partition=", partition), fmt.Sprint("--offset=", s.rnd.Int64N(1+r.high[partition])))
	default:
		flags = append(flags, "--all", "--time="+fmt.Sprint(1+s.rnd.IntN(20), "s"))
	}
	s.setPosition(r, flags)
}

func (s *stage) setPosition(r *reader, flags []string) {
	s.t.Helper()
	p := s.draw("position set", r, flags...)
	if !p.done() {
		return
	}
	for _, m := range lines[moved](s, p.stdout) {
		if m.From != nil {
			s.consume(r, m.Partition, *m.From)
		}
		r.next[m.Partition] = m.To
	}
}

// skipUnread moves the position past unread records while the partition is paused.
func (s *stage) skipUnread(r *reader) {
	s.t.Helper()
	if !s.draw("pause", r, "--all", reason, "--yes").done() {
		return
	}
	s.producer.produce(3)
	s.setPosition(r, []string{"--all", "--end", "--skip-unread", reason, "--yes"})
	s.producer.produce(2)
	s.draw("resume", r, "--all", reason, "--yes")
}

// The method pauses runs the command pause for a consumer, makes a random change while the consumer
// is paused, and resumes the consumer.
func (s *stage) pauses(r *reader) {
	s.t.Helper()
	if !s.draw("pause", r, "--all", reason, "--yes").done() {
		return
	}
	s.producer.produce(2)
	switch s.rnd.IntN(8) {
	case 0:
		s.rewind(r)
		if s.pruning {
			s.prune(r)
		}
	case 1:
		s.restart(r)
	case 2:
		s.setPosition(r, []string{"--all", "--start", reason, "--yes"})
		s.kill(r)
	case 3:
		s.setPosition(r, []string{"--all", "--start", reason, "--yes"})
		s.rebuild(r)
	case 4, 5, 6: // while there are unread events
		s.repair(r)
		s.repair(r)
	default:
		s.producer.produce(2)
	}
	s.draw("resume", r, "--all", reason, "--yes")
}

// repair runs a random command that repairs the reader's projection.
func (s *stage) repair(r *reader) {
	s.t.Helper()
	repairs := []func(*reader){s.replay, s.correct, s.discard, s.takeBack, s.damage, func(r *reader) { s.rebuild(r) }}
	if r.ordered() != nil {
		repairs = append(repairs, s.skip, s.unskip)
	}
	if r == s.readers[0] {
		repairs = append(repairs, s.open, s.fetch)
	}
	pick(s, repairs)(r)
}

// rebuild runs the command rebuild, reports whether it succeeded, and makes the same change in the oracle. At this time the
// consumer may not have read all records again after a rewind.
func (s *stage) rebuild(r *reader) bool {
	s.t.Helper()
	if !s.draw("rebuild", r, "--yes", "--remove", "--max-differences=100000").done() {
		return false
	}
	if s.shortened() {
		s.t.Errorf("%s was rebuilt from a topic that has lost its first records", r.name)
	}
	var log [][]*event
	found := rebuiltRows{
		moved: s.moved, remapped: s.rules.remapped,
		account: func(id string) (int64, []int64) { return s.found(r, id) },
		rows:    func() map[string]string { return must(s.rows(r))(s.t) },
		want:    r.want,
	}
	for p, records := range s.records() {
		log = append(log, records[:r.high[p]])
		found.rereading = found.rereading || r.next[p] < r.high[p]
	}
	r.oracle.rebuilt(log, found)
	return true
}

// The method found returns an account of an ordered projection, as it is in the database: its
// version and its parked versions.
func (s *stage) found(r *reader, id string) (version int64, parked []int64) {
	s.t.Helper()
	query := `SELECT coalesce((SELECT version FROM account_balance WHERE account_id = $1), 0),
		(SELECT array_agg(version) FROM parked_event WHERE account_id = $1)`
	if r.name != "account_balance" {
		query = `SELECT coalesce((SELECT version FROM projection_account WHERE account_id = $1 AND projection = 'random_ordered'), 0),
			(SELECT array_agg(version) FROM projection_parked_event WHERE account_id = $1 AND projection = 'random_ordered')`
	}
	if err := s.db.QueryRow(s.t.Context(), query, id).Scan(&version, &parked); err != nil {
		s.t.Fatal(err)
	}
	return version, parked
}

// refuse makes PostgreSQL refuse the rows of an account for a while. The account's events become
// dead letters that a later replay can apply.
func (s *stage) refuse() {
	s.t.Helper()
	if s.pruning { // then a replay is refused, because the inbox may no longer have the event's id
		return
	}
	s.note("rows of %s are refused", refusedAccount)
	for _, table := range []string{"counted", "pointed"} {
		s.exec(s.db, "ALTER TABLE "+table+" ADD CONSTRAINT refusing CHECK (account_id <> '"+refusedAccount+"') NOT VALID")
	}
	s.rules.refusing = true
	for _, a := range s.producer.busy {
		if a.id == refusedAccount {
			s.producer.send(s.producer.goods(a, 3))
		}
	}
	s.producer.produce(2)
	s.settled("while rows are refused")
	for _, r := range s.readers { // after kill -9, a consumer would read what was not committed again
		s.committed(r)
	}
	for _, table := range []string{"counted", "pointed"} {
		s.exec(s.db, "ALTER TABLE "+table+" DROP CONSTRAINT refusing")
	}
	s.rules.refusing = false
	s.count("constraint", true)
}

// together runs a rebuild and a repair at the same time.
func (s *stage) together() {
	s.t.Helper()
	s.between = false
	r, other := s.anyReader(), s.anyReader()
	if r == other && s.rules.remapped { // it is not known which accounts the replay has changed before the rebuild, which leaves those alone
		return
	}
	var running sync.WaitGroup
	if r != other {
		running.Go(func() { s.rebuild(r) })
		pick(s, []func(*reader){s.replay, s.correct, s.discard, s.takeBack})(other)
		running.Wait()
	} else {
		var p printed
		running.Go(func() { p = s.draw("dlq replay", r, "--yes", reason, "--max-replays=1000") })
		s.rebuild(r)
		running.Wait()
		if !p.refused {
			r.oracle.replay("")
		}
	}
	s.count("rebuild and repair", true)
}

// damage changes a row of a calm account, or a sum, by hand and rebuilds the projection.
func (s *stage) damage(r *reader) {
	s.t.Helper()
	if s.shortened() || s.moved || r.ordered() == nil && s.corrected(r) { // a rebuild may leave the row unchanged
		return
	}
	id := pick(s, s.producer.calm).id
	sql := pick(s, map[string][]string{
		"account_balance": {
			"UPDATE account_balance SET balance = balance + 1 WHERE account_id = $1",
			"DELETE FROM account_balance WHERE account_id = $1",
		},
		"account_statement": {
			"UPDATE account_statement SET amount = amount + 1 WHERE account_id = $1",
			"DELETE FROM account_statement WHERE account_id = $1",
		},
		"daily_turnover": {
			"UPDATE daily_turnover SET credited = credited + 1 WHERE $1 <> '' AND day = (SELECT min(day) FROM daily_turnover)",
			"DELETE FROM daily_turnover WHERE $1 <> '' AND day = (SELECT min(day) FROM daily_turnover)",
		},
		"random_once": {
			"UPDATE counted SET points = points + 1 WHERE account_id = $1",
			"DELETE FROM counted WHERE account_id = $1",
		},
		"random_ordered": {
			"DELETE FROM pointed WHERE account_id = $1",
			"DELETE FROM projection_account WHERE projection = 'random_ordered' AND account_id = $1",
		},
	}[r.name])
	s.note("%s %s", sql, id)
	s.exec(s.db, sql, id)
	for range 10 {
		if s.rebuild(r) {
			s.count("damage", true)
			return
		}
	}
	s.t.Errorf("%s was not rebuilt", r.name)
}

// newText changes the text of a custom projection's file, as docs/own-projection.md says. An instance
// with the old text runs until the end.
func (s *stage) newText() {
	s.t.Helper()
	n := s.rnd.IntN(2)
	r, texts := s.readers[3+n], []string{onceFile, orderedFile}
	if s.fourEyes && s.corrected(r) { // once the text was accepted, a rebuild leaves these rows as they are
		return
	}
	if !s.draw("pause", r, "--all", reason, "--yes").done() {
		return
	}
	flags, factor := r.flags, s.rules.factors[n]
	s.rules.factors[n] = 1 + s.rnd.Int64N(5)
	text := strings.Replace(texts[n], "sum(", fmt.Sprint(s.rules.factors[n], " * sum("), 1)
	r.flags = []string{"--projection-file=" + s.file("changed.sql", text)}
	if s.fourEyes { // the text must have run before
		s.acceptText(r)
	}
	s.producer.produce(2)
	if s.rebuild(r) {
		s.count("new text", true)
	} else {
		r.flags, s.rules.factors[n] = flags, factor
		if s.fourEyes {
			s.acceptText(r)
		}
		s.count("new text", false)
	}
	s.draw("resume", r, "--all", reason, "--yes")
	s.producer.produce(2)
	s.endSecond(r)
	s.restart(r)
}

func (s *stage) endSecond(r *reader) {
	s.t.Helper()
	if r.second != nil {
		r.second.Terminate()
		r.second = nil
	}
}

// corrected reports whether the rows have events that the topic does not have.
func (s *stage) corrected(r *reader) bool {
	if u, is := r.oracle.(*unordered); is {
		return len(u.corrected) > 0
	}
	for _, a := range r.ordered().accounts {
		if a.corrected(s.records()) {
			return true
		}
	}
	return false
}

// acceptText starts an instance that accepts the text of its file.
func (s *stage) acceptText(r *reader) {
	s.t.Helper()
	p := s.launch(r, "--accept-changed-file")
	wait.Until(s.t, patience, "an instance accepts the text", p.Answers("/readyz", 200, ""))
	p.Terminate()
}

// newGroup starts the consumer in a new group. It processes the topic from the first record.
func (s *stage) newGroup(r *reader) {
	s.t.Helper()
	if s.pruning && r.additive { // the inbox may no longer have the ids of the events
		return
	}
	s.endSecond(r)
	r.process.Terminate()
	old := r.group
	s.scratch++
	r.group = fmt.Sprintf("%s-%s-%d", s.topic, r.name, s.scratch)
	r.next, r.high = slices.Clone(s.start), slices.Clone(s.start)
	s.note("%s has the group %s", r.name, r.group)
	r.process = s.launch(r)
	s.arrived(r)
	if p := s.run("position", "remove", "--topic="+s.topic, "--group="+old, reason, "--yes"); !p.done() {
		s.t.Errorf("position remove: %s", p.stderr)
	}
	s.count("new group", true)
}

func (s *stage) prune(r *reader) {
	s.t.Helper()
	p := s.change("inbox", "prune", "--retention=1s", "--output=json")
	s.count("inbox prune", p.done())
}

func (s *stage) restart(r *reader, more ...string) {
	s.t.Helper()
	s.note("SIGTERM of %s, and a start %v", r.name, more)
	r.process.Terminate()
	r.process = s.launch(r, more...)
	s.count("restart", true)
}

func (s *stage) kill(r *reader) {
	s.t.Helper()
	s.note("kill -9 of %s, and a start", r.name)
	r.process.Kill()
	r.killed = true
	s.evict(r)
	r.process = s.launch(r)
	s.count("kill -9", true)
}

// secondInstance starts a second instance of the reader's consumer, or ends it.
func (s *stage) secondInstance(r *reader) {
	s.t.Helper()
	switch {
	case r.second == nil:
		s.note("a second instance of %s", r.name)
		r.second = s.launch(r)
	case s.rnd.IntN(2) == 0:
		s.note("SIGTERM of the second instance of %s", r.name)
		r.second.Terminate()
		r.second = nil
	default:
		s.note("kill -9 of the second instance of %s", r.name)
		r.second.Kill()
		r.killed = true
		s.evict(r)
		r.second = nil
	}
	s.count("second instance", true)
}

// closeBreaker resumes the partitions that a breaker stopped.
func (s *stage) closeBreaker(r *reader) {
	s.t.Helper()
	var open int
	err := s.db.QueryRow(s.t.Context(),
		"SELECT count(*) FROM projector_position WHERE consumer_group = $1 AND breaker_reason IS NOT NULL", r.group).Scan(&open)
	if err != nil || open == 0 {
		return
	}
	flags := []string{"--all", reason, "--yes"}
	if s.tally["breaker"] != nil && s.tally["breaker"].done%2 == 1 { // s.rnd would make the steps depend on the machine's speed
		flags = append(flags, "--through=END")
	}
	s.draw("resume", r, flags...)
	s.count("breaker", true)
}
