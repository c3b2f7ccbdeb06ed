package file

import (
	"slices"
	"strings"
)

// statements splits SQL into statements, at the semicolons that end one.
func (f *parsing) statements() {
	s := &splitter{parsing: f, lexer: lexer{text: f.SQL, line: f.Line}}
	for {
		t := s.lexer.next()
		switch t.kind {
		case end:
			s.finish()
			if len(f.Statements) == 0 && len(f.mistakes) == 0 {
				f.wrong(f.Line, "there is no statement behind the header")
			}
			return
		case broken:
			f.wrong(t.line, "%s", t.text)
			return // what follows cannot be told apart
		default:
			s.take(t)
		}
	}
}

// splitter gathers the tokens of a statement.
type splitter struct {
	*parsing
	lexer lexer
	begun bool
	first token
	last  token
	words []string // the first of the statement, in capitals
	open  []token  // parentheses that are not closed yet
	begin int      // depth of BEGIN ATOMIC … END, in the body of a function
}

// firstWords is how many words tell what a statement is: CREATE OR REPLACE FUNCTION.
const firstWords = 4

func (s *splitter) take(t token) {
	if t.kind == semicolon && len(s.open) == 0 && s.begin == 0 {
		s.finish()
		return
	}
	if !s.begun {
		s.begun, s.first = true, t
	}
	s.last = t
	switch t.kind {
	case word:
		s.takeWord(strings.ToUpper(t.text))
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

// takeWord follows the body of a function or procedure, in which semicolons end no
// statement of the file.
func (s *splitter) takeWord(text string) {
	if len(s.words) < firstWords {
		s.words = append(s.words, text)
	}
	if len(s.open) > 0 || !s.makesRoutine() {
		return
	}
	switch {
	case text == "BEGIN", text == "CASE" && s.begin > 0:
		s.begin++
	case text == "END" && s.begin > 0:
		s.begin--
	}
}

// makesRoutine reports whether the statement is CREATE [OR REPLACE] FUNCTION or PROCEDURE.
func (s *splitter) makesRoutine() bool {
	words := s.words
	if len(words) == 0 || words[0] != "CREATE" {
		return false
	}
	if words = words[1:]; len(words) >= 2 && words[0] == "OR" && words[1] == "REPLACE" {
		words = words[2:]
	}
	return len(words) > 0 && (words[0] == "FUNCTION" || words[0] == "PROCEDURE")
}

// finish ends a statement, if one has begun.
func (s *splitter) finish() {
	if s.begun {
		switch {
		case len(s.open) > 0:
			s.wrong(s.open[len(s.open)-1].line, "a parenthesis is opened here and never closed")
		case s.begin > 0:
			s.wrong(s.first.line, "the body of this function has no END")
		}
		if reason := refusal(s.words); reason != "" {
			s.wrong(s.first.line, "%s", reason)
		}
		s.Statements = append(s.Statements, Statement{SQL: s.SQL[s.first.start:s.last.end], Line: s.first.line})
	}
	s.begun, s.words, s.open, s.begin = false, s.words[:0], s.open[:0], 0
}

// What a statement may not be, by its first words, and why.
const (
	endsTransaction = "begins or ends a transaction; the statements run in the one that moves the position"
	changesRole     = "changes who runs the statements; they run as they were started"
	outlives        = "lasts longer than the transaction, and the connection is another's then"
	needsClient     = "sends rows to or from a program beside the statement; read them from new_events"
	noTransaction   = "cannot run in a transaction"
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
	{"VACUUM", noTransaction},
	{"CHECKPOINT", noTransaction},
	{"ALTER SYSTEM", noTransaction},
	{"CREATE DATABASE", noTransaction},
	{"DROP DATABASE", noTransaction},
}

// refusal is why a statement with these first words cannot be a part of a projection; empty
// when it can.
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
