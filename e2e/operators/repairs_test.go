package operators_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// letter is a line of the output of `dlq list`.
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

// deadLetter returns a random dead letter of a busy account with one of the statuses.
func (s *stage) deadLetter(r *reader, statuses string) *letter {
	s.t.Helper()
	p := s.run(append([]string{"dlq", "list", "--status=" + statuses}, s.readerFlags("dlq list", r)...)...)
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
	if p := s.draw("dlq replay", r, flags...); !p.refused { // exit status 1: an event could not be applied
		r.oracle.replay(only)
	}
}

// discard discards a dead letter, or all of its account.
func (s *stage) discard(r *reader) {
	s.t.Helper()
	l := s.deadLetter(r, "open,ready,waiting")
	if l == nil {
		return
	}
	flags, places := l.flags(), []place{{l.Partition, l.Offset}}
	if s.rnd.IntN(3) == 0 {
		flags, places = []string{"--account=" + *l.AccountID, "--status=open,ready,waiting"}, nil
		p := s.run(append(append([]string{"dlq", "list"}, flags...), s.readerFlags("dlq list", r)...)...)
		for _, l := range lines[letter](s, p.stdout) {
			places = append(places, place{l.Partition, l.Offset})
		}
	}
	p := s.draw("dlq discard", r, append(flags, reason, "--yes")...)
	if p.done() && !strings.Contains(p.stderr, "discarded 0 dead letters") { // the dead letter may have been applied in the meantime
		r.oracle.discard(places...)
	}
}

// takeBack replays a discarded dead letter, which revokes the discard if the event is applied.
func (s *stage) takeBack(r *reader) {
	s.t.Helper()
	l := s.deadLetter(r, "discarded")
	if l == nil {
		return
	}
	p := s.draw("dlq replay"+takenBack, r, append(l.flags(), "--status=discarded", reason, "--yes", "--max-replays=1000")...)
	for _, line := range lines[struct{ Result *string }](s, p.stdout) {
		if line.Result != nil && *line.Result == "applied" && !r.oracle.takeBack(s.records()[l.Partition][l.Offset]) {
			s.t.Errorf("%s: the discarded dead letter %d/%d was applied, which the oracle cannot", r.name, l.Partition, l.Offset)
		}
	}
}

// publishAgain publishes a dead letter to the topic again.
func (s *stage) publishAgain(r *reader) {
	s.t.Helper()
	if s.pruning { // the inbox may no longer have the event's id, so the event would be counted again
		return
	}
	l := s.deadLetter(r, "open,ready,waiting,discarded")
	if l == nil || partitionOf(*l.AccountID, len(s.log)) != l.Partition { // a partition was added since
		return
	}
	s.draw("dlq replay"+republished, r, append(l.flags(), "--to-topic="+s.topic, reason, "--yes", "--max-replays=1000")...)
	ends, err := s.admin.ListEndOffsets(s.t.Context(), s.topic)
	if err := errors.Join(err, ends.Error()); err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.log[l.Partition]
	end, _ := ends.Lookup(s.topic, l.Partition)
	for offset := int64(len(log)); offset < end.Offset; offset++ {
		e := *log[l.Offset]
		e.offset = offset
		s.log[l.Partition] = append(s.log[l.Partition], &e)
	}
}

// correct exports a dead letter, corrects the event in the file and replays the file.
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
	if p := s.run(append(append([]string{"dlq", "export", "--file=" + path}, l.flags()...), s.readerFlags("dlq export", r)...)...); !p.done() {
		s.t.Fatalf("dlq export fails: %s", p.stderr)
	}
	e := s.right(l)
	p := s.draw("dlq replay"+corrected, r, "--from-file="+s.correctedFile(path, e), reason, "--yes", "--max-replays=1000")
	if p.refused || r.additive && strings.Contains(p.stdout+p.stderr, "longer ago than the inbox remembers") {
		return // in the second case, the event may already be counted
	}
	r.oracle.force(e)
}

// The method right returns a correct event with the id and version of a dead letter.
func (s *stage) right(l *letter) *event {
	e := *s.records()[l.Partition][l.Offset]
	e.kind, e.cents, e.currency = credit, 1+s.rnd.Int64N(100_000), "EUR"
	e.asNumber, e.points = false, fmt.Sprint(s.rnd.IntN(100))
	return &e
}

// correctedFile writes the first dead letter of an export to a new file. The dead letter gets the
// value of the event e.
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

// The method waiting returns a random busy account that has waiting events, or "".
func (s *stage) waiting(o *ordered) string { return s.anyBusy((*account).waits, o) }

// anyBusy returns a random busy account that fits, or "".
func (s *stage) anyBusy(fits func(*account) bool, o *ordered) string {
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(o.accounts)) {
		if fits(o.accounts[id]) && !strings.HasPrefix(id, "calm") {
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
	id, flags := s.waiting(o), []string{reason, "--yes"}
	if s.rnd.IntN(4) == 0 { // before the event of the version arrives
		if id = s.anyBusy(func(a *account) bool { return a.version > 0 && !a.waits() }, o); id != "" {
			flags = append(flags, "--nothing-waits")
		}
	}
	if id == "" {
		return
	}
	if s.draw("account skip", r, append(flags, id, fmt.Sprint("--version=", o.account(id).version+1))...).done() {
		o.skip(id)
		if s.rnd.IntN(2) == 0 {
			s.unskip(r)
		}
	}
}

// unskip reverses a skip. An operator can do this if no event was applied after the skip.
func (s *stage) unskip(r *reader) {
	s.t.Helper()
	o := r.ordered()
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(o.accounts)) {
		if a := o.accounts[id]; a.before != nil {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return
	}
	id := pick(s, ids)
	if s.draw("account unskip", r, id, fmt.Sprint("--version=", o.account(id).version), reason, "--yes").done() {
		o.unskip(id)
	}
}

// fetch fetches the missing events of an account from the outbox.
func (s *stage) fetch(r *reader) {
	s.t.Helper()
	o := r.ordered()
	id := s.waiting(o)
	for _, a := range s.producer.busy { // accounts are preferred whose missing event is in the outbox
		for _, e := range a.lost {
			if o.account(a.id).waits() && e.version == o.account(a.id).version+1 && s.rnd.IntN(2) == 0 {
				id = a.id
			}
		}
	}
	if id == "" {
		return
	}
	p := s.draw("gaps fetch", r, "--account="+id, reason, "--yes")
	for _, line := range lines[struct {
		Version int64
		Result  *string
	}](s, p.stdout) {
		if line.Result != nil && *line.Result == "applied" && !s.producer.fetched(o, id, line.Version) {
			s.t.Errorf("gaps fetch says that version %d of %s was applied, which the oracle cannot", line.Version, id)
		}
	}
}

// fetched applies a lost event that was fetched from the outbox. It returns false if it cannot be applied.
func (p *producer) fetched(o *ordered, id string, version int64) bool {
	for _, a := range p.busy {
		for _, e := range a.lost {
			if e.account == id && e.version == version && o.force(e) {
				return true
			}
		}
	}
	return false
}

// open opens one or two accounts with states from a ledger file. At least one of them waits.
func (s *stage) open(r *reader) {
	s.t.Helper()
	o := r.ordered()
	ids := []string{s.waiting(o), s.anyBusy(func(*account) bool { return true }, o)}
	if ids[0] == "" {
		return
	}
	if ids[0] == ids[1] || s.rnd.IntN(2) == 0 {
		ids = ids[:1]
	}
	ledger, from := "account_id,version,balance,currency,status,last_event_id\n", map[string]state{}
	for _, id := range ids {
		at := state{version: o.account(id).version + s.rnd.Int64N(4), balance: s.rnd.Int64N(100_000), currency: "EUR", closed: s.rnd.IntN(5) == 0}
		at.version = max(at.version, 1)
		if s.rnd.IntN(2) == 0 {
			at.lastID = fmt.Sprint("opening-", s.rnd.IntN(1000))
		}
		ledger += fmt.Sprintf("%s,%d,%s,EUR,%s,%s\n", id, at.version, money(at.balance), at.status(), at.lastID)
		from[id] = at
	}
	p := s.draw("open", r, "--ledger="+s.file("ledger.csv", ledger), reason, "--yes")
	for _, line := range lines[struct {
		ID     string `json:"account_id"`
		Result *string
	}](s, p.stdout) {
		if line.Result == nil { // a request under four eyes that was refused
			continue
		}
		if opened := o.open(line.ID, from[line.ID]); opened != (*line.Result == "opened") {
			s.t.Errorf("open says that %s is %s, the oracle has opened it: %v", line.ID, *line.Result, opened)
		}
	}
}
