package errclass

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// messageClasses are the SQLSTATE classes whose message names objects, roles
// and settings, never data. The messages of 22 and 23 repeat the value, those
// of P0 are whatever a trigger wrote.
const messageClasses = " 08 0A 0L 0P 25 26 28 3D 3F 40 42 53 54 55 57 58 F0 "

// serverText tells an error of the server: severity, SQLSTATE, the objects it
// names, and the message where that is free of data. Never Detail, Hint, Where
// or a query: Detail prints the whole row.
func serverText(e *pgconn.PgError) string {
	severity := e.SeverityUnlocalized
	if severity == "" {
		severity = e.Severity
	}
	text := fmt.Sprintf("%s %s", severity, sqlstateReason(e.Code))
	if wellFormed(e.Code) && strings.Contains(messageClasses, " "+e.Code[:2]+" ") {
		text += ": " + e.Message
	}
	var objects []string
	for _, o := range []struct{ kind, name string }{
		{"table", e.TableName},
		{"column", e.ColumnName},
		{"constraint", e.ConstraintName},
		{"type", e.DataTypeName},
	} {
		if o.name != "" {
			objects = append(objects, o.kind+" "+o.name)
		}
	}
	if len(objects) > 0 {
		text += " (" + strings.Join(objects, ", ") + ")"
	}
	return strings.TrimSpace(text)
}

// connectText tells to where and as whom no connection was made, and why.
func connectText(e *pgconn.ConnectError) (string, bool) {
	why, sure := "no reason given", true
	if below := errors.Unwrap(e); below != nil {
		why, sure = describe(below)
	}
	if e.Config == nil {
		return "cannot connect to PostgreSQL: " + why, sure
	}
	return fmt.Sprintf("cannot connect to PostgreSQL (host=%s port=%d user=%s database=%s): %s",
		safeName(e.Config.Host), e.Config.Port, safeName(e.Config.User), safeName(e.Config.Database), why), sure
}

// safeName returns a host, user or database name, unless it may be a piece of a
// mistyped connection string: in postgres://u:pa@ss@host the host is "ss@host".
func safeName(name string) string {
	if strings.ContainsAny(name, "@?&= \t\r\n") {
		return "(withheld: not a plain name; is a password in the URL not percent-encoded?)"
	}
	return name
}

// parseConfigText tells what is wrong with a connection string without any
// part of it. pgconn masks passwords by best effort only, and what lies below
// (net/url) repeats the string.
func parseConfigText(e *pgconn.ParseConfigError) string {
	text := "the PostgreSQL connection settings cannot be used"
	if what := parseConfigComplaint(e); what != "" {
		text += ": " + what
	}
	var file *fs.PathError
	if errors.As(e, &file) {
		text += fmt.Sprintf(" (a file: %v)", file.Err)
	}
	return text
}

// parseConfigComplaint returns pgconn's own words. The library keeps them in a
// private field, so they are what an error of the same connection string
// without words does not have. Values follow a colon or stand in quotes.
func parseConfigComplaint(e *pgconn.ParseConfigError) string {
	empty := pgconn.NewParseConfigError(e.ConnString, "", nil).Error()
	words, ok := strings.CutPrefix(e.Error(), empty)
	if !ok {
		return ""
	}
	if below := errors.Unwrap(e); below != nil {
		words = strings.TrimSuffix(words, " ("+below.Error()+")")
	}
	words, _, _ = strings.Cut(words, ":")
	return mask(words)
}
