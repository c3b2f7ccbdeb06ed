package file

import (
	"slices"
	"strings"
)

// Use is a table in a statement, with one privilege that the statement needs on the table.
type Use struct {
	Table     string // as written in the file
	Privilege string // SELECT, INSERT, UPDATE, DELETE or TRUNCATE
}

// Uses returns the tables of the statements and the privileges that the statements need. It only
// checks keywords, so some of the returned names may not be tables. The result is therefore only
// good enough for advice.
func (p *Projection) Uses() []Use {
	u := &uses{}
	for _, s := range p.Statements {
		u.statement(s)
	}
	return u.all
}

type uses struct {
	all    []Use
	tokens []token
	text   string
	target string // the table that the statement writes
}

func (u *uses) statement(s Statement) {
	l := lexer{text: s.SQL, line: s.Line}
	u.text, u.tokens, u.target = s.SQL, nil, ""
	for t := l.next(); t.kind != end && t.kind != broken; t = l.next() {
		u.tokens = append(u.tokens, t)
	}
	for i := range u.tokens {
		u.word(i)
	}
}

// keyword returns the word at index i in upper case, or "" if the token is not a word.
func (u *uses) keyword(i int) string {
	if i < 0 || i >= len(u.tokens) || u.tokens[i].kind != word {
		return ""
	}
	return strings.ToUpper(u.tokens[i].text)
}

func (u *uses) word(i int) {
	before := u.keyword(i - 1)
	switch u.keyword(i) {
	case "INTO":
		u.write(i+1, map[string][]string{"INSERT": {"INSERT"}, "MERGE": {"SELECT"}}[before])
	case "UPDATE":
		switch before {
		case "DO", "THEN":
			u.need(u.target, "UPDATE")
		case "FOR", "KEY":
		default:
			u.write(i+1, []string{"UPDATE", "SELECT"})
		}
	case "CONFLICT", "RETURNING":
		u.need(u.target, "SELECT")
	case "INSERT", "DELETE":
		if before == "THEN" {
			u.need(u.target, u.keyword(i))
		}
	case "TRUNCATE":
		if u.keyword(i+1) == "TABLE" {
			i++
		}
		u.write(i+1, []string{"TRUNCATE"})
	case "FROM":
		if before == "DELETE" {
			u.write(i+1, []string{"DELETE", "SELECT"})
			return
		}
		u.read(i + 1)
	case "JOIN", "USING":
		u.read(i + 1)
	}
}

// write stores the name at index i as the table that is written.
func (u *uses) write(i int, privileges []string) {
	name, _ := u.name(i)
	if name == "" || len(privileges) == 0 {
		return
	}
	u.target = name
	for _, privilege := range privileges {
		u.need(name, privilege)
	}
}

// read adds the names from index i on, separated by commas, to the tables that are read.
func (u *uses) read(i int) {
	for {
		name, next := u.name(i)
		if name == "" {
			return
		}
		if u.is(next, opening) {
			return // the name is that of a function
		}
		u.need(name, "SELECT")
		if u.keyword(next) == "AS" {
			next++
		}
		if u.keyword(next) != "" {
			next++ // an alias
		}
		if !u.is(next, other) || u.source(next) != "," {
			return
		}
		i = next + 1
	}
}

// name returns the name at index i and the index after it. The name is empty if there is none.
func (u *uses) name(i int) (name string, next int) {
	for u.keyword(i) == "ONLY" || u.keyword(i) == "LATERAL" {
		i++
	}
	var text strings.Builder
	for i < len(u.tokens) {
		if !u.is(i, word) && (!u.is(i, quoted) || u.source(i)[0] != '"') {
			return "", i
		}
		text.WriteString(u.source(i))
		i++
		if !u.is(i, other) || u.source(i) != "." {
			break
		}
		text.WriteByte('.')
		i++
	}
	return text.String(), i
}

func (u *uses) is(i int, k kind) bool { return i < len(u.tokens) && u.tokens[i].kind == k }

func (u *uses) source(i int) string { return u.text[u.tokens[i].start:u.tokens[i].end] }

func (u *uses) need(table, privilege string) {
	use := Use{Table: table, Privilege: privilege}
	if table == "" || table == "new_events" || slices.Contains(u.all, use) {
		return
	}
	u.all = append(u.all, use)
}
