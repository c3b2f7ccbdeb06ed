package operators_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const reason = "--reason=drawn"

// pick draws one of several.
func pick[T any](s *stage, from []T) T { return from[s.rnd.IntN(len(from))] }

func (s *stage) anyOrdered() *reader {
	return pick(s, slices.DeleteFunc(slices.Clone(s.readers), func(r *reader) bool { return r.ordered() == nil }))
}

// moved is a line of `position set`.
type moved struct {
	Partition int
	From      *int64
	To        int64
}

// rewind sets positions back. What is read again is delivered to the oracle again.
func (s *stage) rewind(r *reader) {
	s.t.Helper()
	partition := s.rnd.IntN(partitions)
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

// skipUnread leaves records unread on purpose, while the partition is paused.
func (s *stage) skipUnread(r *reader) {
	s.t.Helper()
	if !s.draw("pause", r, "--all", reason, "--yes").done() {
		return
	}
	s.producer.produce(3)
	s.setPosition(r, []string{"--all", "--end", "--skip-unread", reason, "--yes"})
	r.unread = true
	s.producer.produce(2)
	s.draw("resume", r, "--all", reason, "--yes")
}

// pauses stops a consumer, does something else, and has it go on.
func (s *stage) pauses(r *reader) {
	s.t.Helper()
	if !s.draw("pause", r, "--all", reason, "--yes").done() {
		return
	}
	s.producer.produce(2)
	switch s.rnd.IntN(5) {
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
	default:
		s.producer.produce(2)
	}
	s.draw("resume", r, "--all", reason, "--yes")
}

// rebuild has the oracle do the same, also while the position is behind where it was.
func (s *stage) rebuild(r *reader) {
	s.t.Helper()
	if s.unfinished(r) {
		return
	}
	if !s.draw("rebuild", r, "--yes", "--remove", "--max-differences=100000").done() {
		return
	}
	var log [][]*event
	found := rebuiltRows{
		account: func(id string) (int64, []int64) { return s.found(r, id) },
		rows:    func() map[string]string { return must(s.rows(r))(s.t) },
	}
	for p, records := range s.records() {
		log = append(log, records[:r.high[p]])
		found.behind = found.behind || r.next[p] < r.high[p]
	}
	r.oracle.rebuilt(log, found)
}

// unfinished are the rebuilds that are known to lose events, until the one rebuild of
// docs/decisions replaces them: of an ordered custom projection, which loses what came beyond
// the park limit; and of sums of which an event was corrected and records were left unread,
// which marks events as counted that it does not count.
func (s *stage) unfinished(r *reader) bool {
	if u, is := r.oracle.(*unordered); is {
		return r.additive && r.unread && len(u.corrected) > 0
	}
	return r.name == "random_ordered"
}

// found is the version of an account in an ordered projection, and what of it is parked.
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

// letter is a line of `dlq list`.
type letter struct {
	Class, Status   string
	AccountID       *string `json:"account_id"`
	EventID         *string `json:"event_id"`
	ReceivedVersion *int64  `json:"received_version"`
	Partition       int32
	Offset          int64
	DLQPartition    int32 `json:"dlq_partition"`
	DLQOffset       int64 `json:"dlq_offset"`
}

// deadLetter draws a dead letter of a busy account that is not resolved.
func (s *stage) deadLetter(r *reader, statuses string) *letter {
	s.t.Helper()
	p := s.run(append([]string{"dlq", "list", "--status=" + statuses}, s.of("dlq list", r)...)...)
	if !p.done() {
		s.t.Fatalf("dlq list fails: %s", p.stderr)
	}
	all := slices.DeleteFunc(lines[letter](s, p.stdout), func(l letter) bool {
		return l.AccountID == nil || strings.HasPrefix(*l.AccountID, "calm")
	})
	if len(all) == 0 {
		return nil
	}
	return &all[s.rnd.IntN(len(all))]
}

func (l *letter) flags() []string {
	return []string{fmt.Sprint("--partition=", l.Partition), fmt.Sprint("--offset=", l.Offset)}
}

func (s *stage) replay(r *reader) {
	s.t.Helper()
	flags := []string{"--yes", reason, "--max-replays=1000"}
	only := ""
	if s.rnd.IntN(2) == 0 {
		if l := s.deadLetter(r, "open,ready,waiting"); l != nil {
			only = *l.AccountID
			flags = append(flags, "--account="+only)
		}
	}
	s.draw("dlq replay", r, flags...) // 1: something could not be applied
	r.oracle.replay(only)
}

func (s *stage) discard(r *reader) {
	s.t.Helper()
	l := s.deadLetter(r, "open,ready,waiting")
	if l == nil {
		return
	}
	if s.draw("dlq discard", r, append(l.flags(), reason, "--yes")...).done() {
		r.oracle.discard(place{l.Partition, l.Offset})
	}
}

// correct exports a dead letter, corrects it and replays it.
func (s *stage) correct(r *reader) {
	s.t.Helper()
	l := s.deadLetter(r, "open")
	if l == nil || s.rnd.IntN(4) == 0 {
		l = s.deadLetter(r, "open,ready,waiting")
	}
	if l == nil || l.Class == "version_conflict" {
		return
	}
	path := filepath.Join(s.t.TempDir(), "letters.jsonl")
	if p := s.run(append(append([]string{"dlq", "export", "--file=" + path}, l.flags()...), s.of("dlq export", r)...)...); !p.done() {
		s.t.Fatalf("dlq export fails: %s", p.stderr)
	}
	e := *s.records()[l.Partition][l.Offset]
	e.kind, e.cents, e.currency = credit, 1+s.rnd.Int64N(100_000), "EUR"
	e.asNumber, e.points = false, fmt.Sprint(s.rnd.IntN(100))
	p := s.draw("dlq replay"+corrected, r, "--from-file="+s.correctedFile(path, &e), reason, "--yes", "--max-replays=1000")
	if r.additive && strings.Contains(p.stdout, "longer ago than the inbox remembers") {
		return // it may have been counted since
	}
	r.oracle.force(&e)
}

// correctedFile writes the first dead letter of an export with another value.
func (s *stage) correctedFile(path string, e *event) string {
	s.t.Helper()
	text := must(os.ReadFile(path))(s.t)
	first, _, _ := strings.Cut(string(text), "\n")
	var line map[string]json.RawMessage
	if err := json.Unmarshal([]byte(first), &line); err != nil {
		s.t.Fatal(err)
	}
	line["value"] = must(json.Marshal(string(e.value())))(s.t)
	delete(line, "value_base64")
	return s.file("corrected.jsonl", string(must(json.Marshal(line))(s.t))+"\n")
}

// waiting draws a busy account that waits, "" when there is none.
func (s *stage) waiting(o *ordered) string {
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(o.accounts)) {
		if a := o.accounts[id]; a.waits() && !strings.HasPrefix(id, "calm") {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return pick(s, ids)
}

func (s *stage) skip(r *reader) {
	s.t.Helper()
	o := r.ordered()
	id := s.waiting(o)
	if id == "" {
		return
	}
	if s.draw("account skip", r, id, fmt.Sprint("--version=", o.account(id).version+1), reason, "--yes").done() {
		o.skip(id)
		if s.rnd.IntN(2) == 0 {
			s.unskip(r)
		}
	}
}

// unskip takes a skip back, where nothing was applied since.
func (s *stage) unskip(r *reader) {
	s.t.Helper()
	o := r.ordered()
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(o.accounts)) {
		if o.accounts[id].before != nil {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		s.skip(r)
		return
	}
	id := pick(s, ids)
	if s.draw("account unskip", r, id, fmt.Sprint("--version=", o.account(id).version), reason, "--yes").done() {
		o.unskip(id)
	}
}

// fetch gets what an account waits for from the outbox.
func (s *stage) fetch(r *reader) {
	s.t.Helper()
	o := r.ordered()
	id := s.waiting(o)
	for _, a := range s.producer.busy { // rather one that has what it waits for in the outbox
		for _, e := range a.lost {
			if o.account(a.id).waits() && e.version == o.account(a.id).version+1 && s.rnd.IntN(2) == 0 {
				id = a.id
			}
		}
	}
	if id == "" {
		return
	}
	p := s.draw("gaps fetch", r, "--account="+id, "--outbox-url="+s.outbox, reason, "--yes",
		"--outbox-query=SELECT account_id, payload FROM outbox WHERE account_id = ANY ($1) AND version = ANY ($2)")
	for _, line := range lines[struct {
		Version int64
		Result  *string
	}](s, p.stdout) {
		if line.Result != nil && *line.Result == "applied" {
			s.fetched(o, id, line.Version)
		}
	}
}

func (s *stage) fetched(o *ordered, id string, version int64) {
	s.t.Helper()
	for _, a := range s.producer.busy {
		for _, e := range a.lost {
			if e.account == id && e.version == version && o.force(e) {
				return
			}
		}
	}
	s.t.Errorf("gaps fetch says that version %d of %s was applied, which the oracle cannot", version, id)
}

// open has a waiting account start from a ledger.
func (s *stage) open(r *reader) {
	s.t.Helper()
	o := r.ordered()
	id := s.waiting(o)
	if id == "" {
		return
	}
	from := state{version: o.account(id).version + 1 + s.rnd.Int64N(3), balance: s.rnd.Int64N(100_000), currency: "EUR"}
	if s.rnd.IntN(2) == 0 {
		from.lastID = fmt.Sprint("opening-", s.rnd.IntN(1000))
	}
	ledger := s.file("ledger.csv", fmt.Sprintf("account_id,version,balance,currency,status,last_event_id\n%s,%d,%s,EUR,open,%s\n",
		id, from.version, money(from.balance), from.lastID))
	if s.draw("open", r, "--ledger="+ledger, reason, "--yes").done() {
		o.open(id, from)
	}
}

// refuse has PostgreSQL refuse the rows of an account for a while: its events are dead letters
// that can be applied afterwards.
func (s *stage) refuse() {
	s.t.Helper()
	if s.pruning { // a replay of such a dead letter is refused when its marker may be gone
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
	for _, table := range []string{"counted", "pointed"} {
		s.exec(s.db, "ALTER TABLE "+table+" DROP CONSTRAINT refusing")
	}
	s.rules.refusing = false
	s.count("constraint", true)
}

func (s *stage) prune(r *reader) {
	s.t.Helper()
	p := s.run("inbox", "prune", "--retention=1s", "--output=json")
	s.count("inbox prune", p.done())
}

func (s *stage) restart(r *reader) {
	s.t.Helper()
	s.note("SIGTERM of %s, and a start", r.name)
	r.process.Terminate()
	s.launch(r)
	s.count("restart", true)
}

func (s *stage) kill(r *reader) {
	s.t.Helper()
	s.note("kill -9 of %s, and a start", r.name)
	r.process.Kill()
	s.evict(r)
	s.launch(r)
	s.count("kill -9", true)
}

// closeBreaker resumes what a breaker has stopped.
func (s *stage) closeBreaker(r *reader) {
	s.t.Helper()
	var open int
	err := s.db.QueryRow(s.t.Context(),
		"SELECT count(*) FROM projector_position WHERE consumer_group = $1 AND breaker_reason IS NOT NULL", r.group).Scan(&open)
	if err != nil || open == 0 {
		return
	}
	s.draw("resume", r, "--all", reason, "--yes")
	s.count("breaker", true)
}
