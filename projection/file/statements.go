package file

import (
	"slices"
	"strings"
)

// statements splits the SQL of the file into statements.
func (f *parsing) statements() {
	s := &splitter{parsing: f, lexer: lexer{text: f.SQL, line: f.Line}}
	for {
		t := s.lexer.next()
		switch t.kind {
		case end:
			s.finish()
			if len(f.Statements) == 0 && len(f.mistakes) == 0 {
				f.wrong(f.Line, "there is no statement after the header")
			}
			return
		case broken:
			f.wrong(t.line, "%s", t.text)
			return // the rest cannot be split into statements
		default:
			s.add(t)
		}
	}
}

// splitter collects the tokens of a statement.
type splitter struct {
	*parsing
	lexer lexer
	begun bool
	first token
	last  token
	words []string // the first words of the statement, in upper case
	open  []token  // parentheses that are not closed yet
}

// firstWords is how many words are needed to recognise a type of statement, such as SET LOCAL
// SESSION AUTHORIZATION.
const firstWords = 4

func (s *splitter) add(t token) {
	if t.kind == semicolon {
		s.finish()
		return
	}
	if !s.begun {
		s.begun, s.first = true, t
	}
	s.last = t
	switch t.kind {
	case word:
		if len(s.words) < firstWords {
			s.words = append(s.words, strings.ToUpper(t.text))
		}
	case opening:
		s.open = append(s.open, t)
	case closing:
		if len(s.open) == 0 {
			s.wrong(t.line, "a parenthesis is closed that was not opened")
			return
		}
		s.open = s.open[:len(s.open)-1]
	case parameter:
		s.wrong(t.line, "%s: the statements have no parameters; the events are in new_events", t.text)
	default:
	}
}

// finish ends a statement, if one has begun.
func (s *splitter) finish() {
	if s.begun {
		if len(s.open) > 0 {
			s.wrong(s.open[len(s.open)-1].line, "a parenthesis is opened here and never closed")
		}
		if reason := refusal(s.words); reason != "" {
			s.wrong(s.first.line, "%s", reason)
		}
		s.Statements = append(s.Statements, Statement{SQL: s.SQL[s.first.start:s.last.end], Line: s.first.line})
	}
	s.begun, s.words, s.open = false, s.words[:0], s.open[:0]
}

// These are the reasons why statements with certain first words are refused.
const (
	endsTransaction = "begins or ends a transaction; the statements run in the one that moves the position"
	changesRole     = "changes who runs the statements; they run as they were started"
	outlives        = "lasts longer than the transaction, and the connection is another's then"
	needsClient     = "sends rows to or from the client; read them from new_events"
	noTransaction   = "cannot run in a transaction"
	takesCursor     = "is about cursors, and one holds the events of new_events"
	changesSchema   = "changes the schema, and the statements run again and again; do it once, with psql or a migration"
)

var refused = []struct {
	words  string
	reason string
}{
	{"BEGIN", endsTransaction},
	{"START", endsTransaction},
	{"COMMIT", endsTransaction},
	{"END", endsTransaction},
	{"ROLLBACK", endsTransaction},
	{"ABORT", endsTransaction},
	{"SAVEPOINT", endsTransaction},
	{"RELEASE", endsTransaction},
	{"PREPARE TRANSACTION", endsTransaction},
	{"SET TRANSACTION", endsTransaction},
	{"SET LOCAL TRANSACTION", endsTransaction},
	{"SET ROLE", changesRole},
	{"SET LOCAL ROLE", changesRole},
	{"SET SESSION AUTHORIZATION", changesRole},
	{"SET LOCAL SESSION AUTHORIZATION", changesRole},
	{"SET LOCAL SESSION_AUTHORIZATION", changesRole},
	{"RESET", changesRole},
	{"PREPARE", outlives},
	{"EXECUTE", outlives},
	{"DEALLOCATE", outlives},
	{"DISCARD", outlives},
	{"LISTEN", outlives},
	{"UNLISTEN", outlives},
	{"LOAD", outlives},
	{"COPY", needsClient},
	{"DECLARE", takesCursor},
	{"FETCH", takesCursor},
	{"MOVE", takesCursor},
	{"CLOSE", takesCursor},
	{"VACUUM", noTransaction},
	{"CHECKPOINT", noTransaction},
	{"CLUSTER", changesSchema},
	{"REINDEX", changesSchema},
	{"CREATE", changesSchema},
	{"ALTER", changesSchema},
	{"DROP", changesSchema},
	{"GRANT", changesSchema},
	{"REVOKE", changesSchema},
	{"COMMENT", changesSchema},
	{"REASSIGN", changesSchema},
	{"SECURITY", changesSchema},
	{"IMPORT", changesSchema},
}

// refusal returns the reason why a projection may not contain a statement with these first words,
// or "".
func refusal(words []string) string {
	if len(words) == 0 {
		return ""
	}
	text, second := strings.Join(words, " ")+" ", ""
	if len(words) > 1 {
		second = words[1]
	}
	for _, r := range refused {
		if strings.HasPrefix(text, r.words+" ") {
			return r.words + ": " + r.reason
		}
	}
	if words[0] == "SET" && !slices.Contains([]string{"LOCAL", "CONSTRAINTS"}, second) {
		return "SET: " + outlives + "; use SET LOCAL"
	}
	return ""
}
