package operators_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"projector/e2e/process"
)

const outboxQuery = "SELECT account_id, payload FROM outbox WHERE account_id = ANY ($1) AND version = ANY ($2)"

// printed is what a command printed, and its exit status.
type printed struct {
	status         int
	stdout, stderr string
	refused        bool // the approver's plan is not the operator's, so nothing was changed
}

func (p printed) done() bool { return p.status == 0 }

// run runs a command as the owner of the database.
func (s *stage) run(args ...string) printed {
	s.t.Helper()
	return s.runAs(s.url, args...)
}

// runAs runs a command with a login. The program may refuse it (exit status 1, with a reason). With
// exit status 2 the test fails, because this status means that the command line is wrong.
func (s *stage) runAs(url string, args ...string) printed {
	s.t.Helper()
	env := []string{"DATABASE_URL=" + url, "OUTBOX_URL=" + s.outbox, "OUTBOX_QUERY=" + outboxQuery, "KAFKA_BROKERS=" + strings.Join(s.addrs, ","), s.rules.ignored(), "EVENT_MAPPING=" + s.mapping}
	began := time.Now()
	status, stdout, stderr := process.Binary{Path: must(binary())(s.t)}.Once(s.t, env, args...)
	s.note("$ projector %s\n  exit %d after %s\n%s", strings.Join(args, " "), status, time.Since(began).Round(time.Millisecond),
		indented(stdout+stderr))
	if status != 0 && status != 1 || status == 1 && strings.TrimSpace(stderr) == "" {
		s.t.Fatalf("projector %s: exit %d, want 0, or 1 with a reason:\n%s%s", strings.Join(args, " "), status, stdout, stderr)
	}
	if unexpected.MatchString(stderr) {
		s.t.Errorf("projector %s: %s", strings.Join(args, " "), stderr)
	}
	return printed{status: status, stdout: stdout, stderr: stderr}
}

// unexpected matches errors of PostgreSQL that no command may have: in data, constraints, statements and
// privileges, and in PostgreSQL itself.
var unexpected = regexp.MustCompile(`(ERROR|SQLSTATE) (22|23|42|XX)`)

// change runs a command that changes something. If four eyes is on, an operator requests the change
// and an approver approves it.
func (s *stage) change(args ...string) printed {
	s.t.Helper()
	if !s.fourEyes {
		return s.run(args...)
	}
	asked := s.runAs(s.operator, args...)
	request := requested.FindStringSubmatch(asked.stderr)
	if request == nil { // the command was refused, or its plan is empty
		return asked
	}
	s.beforeApproval()
	p := s.runAs(s.approver, "approve", request[1], "--reason=compared", "--output=json")
	p.stdout = results(s, p.stdout)
	p.refused = strings.Contains(p.stderr, "is refused, for")
	return p
}

// beforeApproval runs another command between a request and its approval.
func (s *stage) beforeApproval() {
	s.t.Helper()
	if !s.between || s.rnd.IntN(3) > 0 {
		return
	}
	s.between = false
	defer func() { s.between = true }()
	s.note("before the approval:")
	r := s.anyReader()
	pick(s, []func(){
		func() { s.rebuild(r) },
		func() { s.replay(r) },
		func() { s.correct(r) },
		func() { s.discard(r) },
		func() { s.skip(s.anyOrdered()) },
		func() { s.open(s.readers[0]) },
	})()
	s.count("command before an approval", true)
}

var requested = regexp.MustCompile(`request (\d+) was recorded`)

// results returns the results in the document of approve, one a line, as the approved command would
// have printed them.
func results(s *stage, document string) (all string) {
	s.t.Helper()
	for _, approved := range lines[struct{ Results []json.RawMessage }](s, document) {
		for _, result := range approved.Results {
			all += string(result) + "\n"
		}
	}
	return all
}

// These are added to the name of the command `dlq replay`. Each kind of replay is counted separately.
const (
	corrected   = ": from a file"
	republished = ": to the topic"
	takenBack   = ": of a discard"
)

// draw runs a command for a reader and counts whether it succeeded. kind is the name of the
// command.
func (s *stage) draw(kind string, r *reader, args ...string) printed {
	s.t.Helper()
	typed, _, _ := strings.Cut(kind, ":")
	args = append(strings.Fields(typed), append(args, s.readerFlags(kind, r)...)...)
	if s.between && s.rnd.IntN(4) == 0 { // a plan changes nothing
		s.run(slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == "--yes" })...)
	}
	p := s.change(args...)
	s.count(kind, p.done() || strings.Contains(p.stdout, `"result":"applied"`)) // a command that applied only some events also counts as success
	return p
}

func (s *stage) count(kind string, done bool) {
	s.notes.Lock()
	defer s.notes.Unlock()
	if s.tally[kind] == nil {
		s.tally[kind] = &outcomes{}
	}
	if done {
		s.tally[kind].done++
	} else {
		s.tally[kind].refused++
	}
}

// readerFlags returns the flags that a command needs to select the reader.
func (s *stage) readerFlags(kind string, r *reader) []string {
	flags := append([]string{"--output=json"}, r.flags...)
	switch kind {
	case "account skip", "account unskip", "open", "gaps fetch":
		return flags
	case "rebuild":
		return append(append(flags, "--topic="+s.topic, "--group="+r.group), s.limits...)
	default:
		return append(flags, "--topic="+s.topic, "--group="+r.group)
	}
}

const shownBytes = 1500

func indented(text string) string {
	text = strings.TrimSpace(text)
	if len(text) > shownBytes {
		text = text[:shownBytes] + fmt.Sprintf(" … (%d bytes)", len(text))
	}
	return "  | " + strings.ReplaceAll(text, "\n", "\n  | ")
}

// lines decodes a text of JSON lines.
func lines[T any](s *stage, text string) (all []T) {
	s.t.Helper()
	for line := range strings.Lines(text) {
		var v T
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			s.t.Fatalf("%v: %s", err, line)
		}
		all = append(all, v)
	}
	return all
}
