package file

import "strings"

// UpdatesFromEvents returns the lines of the UPDATE statements that join new_events without grouping
// it. PostgreSQL changes each row of the table once, with any one of the events that match, and
// ignores the others without an error. This is right only if no two events of a batch change the
// same row. The function only checks keywords, so the result is only good enough for advice.
func (p *Projection) UpdatesFromEvents() []int {
	var lines []int
	for _, s := range p.Statements {
		lines = append(lines, updatesFromEvents(s)...)
	}
	return lines
}

func updatesFromEvents(s Statement) (lines []int) {
	l := lexer{text: s.SQL, line: s.Line}
	type level struct {
		update int  // line of the UPDATE; 0 if there is none
		from   bool // the tables that the UPDATE reads follow
	}
	before, levels := "", []level{{}} // one level for each open parenthesis
	for t := l.next(); t.kind != end && t.kind != broken; t = l.next() {
		at := &levels[len(levels)-1]
		text := ""
		switch t.kind {
		case opening:
			levels = append(levels, level{})
		case closing:
			levels = levels[:max(len(levels)-1, 1)]
		case word:
			text = strings.ToUpper(t.text)
		default:
		}
		switch text {
		case "UPDATE":
			if before != "DO" && before != "THEN" && before != "FOR" && before != "KEY" {
				*at = level{update: t.line}
			}
		case "FROM":
			at.from = at.update > 0
		case "WHERE", "RETURNING":
			at.from = false
		case "NEW_EVENTS":
			if at.from {
				lines = append(lines, at.update)
				at.from = false
			}
		}
		before = text
	}
	return lines
}
