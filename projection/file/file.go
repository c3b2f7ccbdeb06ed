// Package file parses the file of a custom projection, which contains SQL with a header.
//
//	-- projection: loyalty_points
//	-- mode: ordered
//	-- types: PointsEarned, PointsSpent
//	-- tables: loyalty
//	INSERT INTO loyalty (account_id, points)
//	SELECT account_id, sum((data->>'points')::bigint) FROM new_events GROUP BY account_id
//	ON CONFLICT (account_id) DO UPDATE SET points = loyalty.points + EXCLUDED.points;
//
// The package uses no database, so it cannot check the statements themselves.
package file

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Mode says in which order a projection receives events.
type Mode string

// The header of a file must name one of these modes.
const (
	Once    Mode = "once"    // in any order, but each event id once
	Ordered Mode = "ordered" // in the order of the versions of each account, without gaps
)

// Projection is a parsed file.
type Projection struct {
	Name       string
	Mode       Mode
	Types      []string // event types that the projection uses; sorted; never empty
	Tables     []string // tables that a rebuild copies, in lower case; may be empty
	TablesLine int      // line of the header with the tables; 0 if there is none
	SQL        string   // the statements as written
	Line       int      // line of the file on which SQL begins
	Statements []Statement
	Text       string // the whole file
	SHA256     string // hex, of the whole file
}

// Statement is one SQL statement, without the semicolon and the white space and comments around it.
type Statement struct {
	SQL  string
	Line int // line of the file on which SQL begins
}

// LineAt returns the line of the file that contains the given position in the statement. PostgreSQL
// reports such a position with an error. The position counts characters from 1, and it is 0 if the
// error has no position. For a position outside the statement, LineAt returns the statement's first
// line.
func (s Statement) LineAt(position int) int {
	line, at := s.Line, 1
	for _, r := range s.SQL {
		if at >= position {
			return line
		}
		if r == '\n' {
			line++
		}
		at++
	}
	return s.Line
}

// Error is a mistake in a file.
type Error struct {
	File   string
	Line   int
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("%s: line %d: %s", e.File, e.Line, e.Reason) }

// maxBytes limits the size of a file. The limit is needed because the file is sent to PostgreSQL
// with each batch and stored in a row.
const maxBytes = 1 << 20

// Parse parses a file. The parameter name is the name of the file in errors. The returned error
// joins an *Error for each mistake, in the order of the lines.
func Parse(name string, text []byte) (Projection, error) {
	f := &parsing{name: name, Projection: Projection{Text: string(text)}}
	sum := sha256.Sum256(text)
	f.SHA256 = hex.EncodeToString(sum[:])
	if f.readable(text) {
		f.header()
		f.statements()
	}
	if len(f.mistakes) > 0 {
		slices.SortStableFunc(f.mistakes, func(a, b *Error) int { return a.Line - b.Line })
		all := make([]error, len(f.mistakes))
		for i, mistake := range f.mistakes {
			all[i] = mistake
		}
		return Projection{}, errors.Join(all...)
	}
	return f.Projection, nil
}

type parsing struct {
	Projection
	name     string
	mistakes []*Error
}

func (f *parsing) wrong(line int, format string, args ...any) {
	f.mistakes = append(f.mistakes, &Error{File: f.name, Line: line, Reason: fmt.Sprintf(format, args...)})
}

// readable reports whether the text can be sent to PostgreSQL.
func (f *parsing) readable(text []byte) bool {
	switch {
	case len(text) > maxBytes:
		f.wrong(1, "the file is larger than %d bytes", maxBytes)
	case strings.HasPrefix(string(text), "\uFEFF"):
		f.wrong(1, "the file begins with a byte order mark; save it as UTF-8 without one")
	}
	for i, line := range strings.Split(string(text), "\n") {
		switch {
		case !utf8.ValidString(line):
			f.wrong(i+1, "is not UTF-8")
		case strings.ContainsRune(line, 0):
			f.wrong(i+1, "has a NUL byte")
		default:
			continue
		}
		break
	}
	return len(f.mistakes) == 0
}
