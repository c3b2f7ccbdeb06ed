package errclass

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"
)

// knownText returns the text of an error of a known type. The result sure has the same meaning as
// in the function describe. The result ok is false for an error of another type.
func knownText(err error) (text string, sure, ok bool) {
	switch e := err.(type) { //nolint:errorlint // only this node, not its chain
	case *pgconn.ConnectError:
		text, sure = connectText(e)
	case *net.OpError:
		text, sure = socketText(e)
	case *kgo.ErrGroupSession:
		text, sure = groupText(e)
	default:
		text, ok = fieldsText(err)
		if !ok {
			text, ok = fixedText(err)
		}
		return text, ok, ok
	}
	return text, sure, true
}

func fieldsText(err error) (text string, ok bool) {
	switch e := err.(type) { //nolint:errorlint // only this node, not its chain
	case Describer:
		return e.SafeText(), true
	case *pgconn.PgError:
		return serverText(e), true
	case *pgconn.ParseConfigError:
		return parseConfigText(e), true
	case pgx.ScanArgError:
		// The text of the wrapped error is left out, because it contains the value.
		return fmt.Sprintf("column %s cannot be read into what this build expects", e.FieldName), true
	case *sr.ResponseError:
		return registryText(e), true
	case *net.DNSError:
		return fmt.Sprintf("lookup %s: %s", safeName(e.Name), e.Err), true
	case *kerr.Error:
		return brokerText(e), true
	case *kgo.ErrDataLoss, *kgo.ErrDecompressTooLarge, *kgo.ErrFirstReadEOF, *fs.PathError:
		return e.Error(), true
	}
	return notKafka(err)
}

// fixedText returns the text of an error that a library defines as a constant.
func fixedText(err error) (string, bool) {
	if isTLS(err) {
		return err.Error(), true
	}
	if len(children(err)) > 0 {
		return "", false
	}
	for _, classify := range []classifier{postgresNode, kafkaNode, registryNode, networkNode} {
		if _, ok := classify(err); ok {
			return err.Error(), true
		}
	}
	return "", false
}

// socketText says where a socket operation failed and why. The address may be shown, because it is
// an IP address with a port, or the path of a socket.
func socketText(e *net.OpError) (string, bool) {
	if isAlert(e) { // the texts of TLS alerts are fixed
		return e.Error(), true
	}
	if e.Err == nil {
		return strings.TrimSpace(e.Op + " " + e.Net), true
	}
	why, sure := describe(e.Err)
	if e.Addr == nil {
		return fmt.Sprintf("%s %s: %s", e.Op, e.Net, why), sure
	}
	return fmt.Sprintf("%s %s %s: %s", e.Op, e.Net, e.Addr, why), sure
}

func groupText(e *kgo.ErrGroupSession) (string, bool) {
	const what = "unable to join group session"
	if e.Err == nil {
		return what, true
	}
	text, sure := describe(e.Err)
	return what + ": " + text, sure
}

// messageClasses lists the SQLSTATE classes whose messages contain no data, only names of objects,
// roles and settings. The messages of classes 22 and 23 may contain the refused value. A trigger
// may write any text into the messages of class P0.
const messageClasses = " 08 0A 0L 0P 25 26 28 3D 3F 40 42 53 54 55 57 58 F0 "

// serverText returns the text of an error of the server. It contains the severity, the SQLSTATE,
// the names of tables, columns and constraints, and the message if the message contains no data.
// Detail, Hint, Where and the query are left out, because they may contain data. For example,
// Detail may contain the whole row.
func serverText(e *pgconn.PgError) string {
	text := severityOf(e) + " " + sqlstateReason(e.Code)
	// A session that an internal error ends was mostly about to begin. For example, on a full disk
	// PostgreSQL could not write a file of its own.
	internal := strings.HasPrefix(e.Code, "XX") && endsSession(e)
	if wellFormed(e.Code) && (internal || strings.Contains(messageClasses, " "+e.Code[:2]+" ")) {
		text += ": " + e.Message
	} else if name := conditions()[e.Code]; name != "" {
		text += " " + name
	}
	if e.Code == "28P01" {
		text += " (check the user and the password)"
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
	if name := e.ConstraintName; e.Code == "23505" && (name == "dlq_action_pkey" || name == "repair_request_pkey") {
		text += fmt.Sprintf(": the sequence of its ids is behind its rows, as after logical replication; "+
			"as the owner, run SELECT setval(pg_get_serial_sequence('%s', 'id'), max(id)) FROM %[1]s", e.TableName)
	}
	return strings.TrimSpace(text)
}

// connectText describes a failure to connect, with the address, the user and the reason.
func connectText(e *pgconn.ConnectError) (string, bool) {
	why, sure := "no reason given", true
	if below := errors.Unwrap(e); below != nil {
		why, sure = describe(below)
		if attempts := children(below); len(attempts) > 1 && !isFormatted(below) {
			why, sure = joinedText(withoutTLSRefusals(attempts))
		}
	}
	why += silentServer(why)
	if e.Config == nil {
		return "cannot connect to PostgreSQL: " + why, sure
	}
	for _, name := range []string{e.Config.User, e.Config.Database} { // the server's message repeats them
		if shown := safeName(name); shown != name {
			why = strings.ReplaceAll(why, name, shown)
		}
	}
	return fmt.Sprintf("cannot connect to PostgreSQL (host=%s port=%d user=%s database=%s): %s",
		safeName(e.Config.Host), e.Config.Port, safeName(e.Config.User), safeName(e.Config.Database), why), sure
}

// safeName returns a host, user or database name, unless it may be a part of a mistyped connection
// string. For example, in postgres://u:pa@ss@host the host is "ss@host".
func safeName(name string) string {
	if strings.ContainsAny(name, "@?&= \t\r\n") {
		return "(withheld: not a plain name; is a password in the URL not percent-encoded?)"
	}
	return name
}

// parseConfigText says what is wrong with a connection string, without any part of the string.
// pgconn does not mask passwords reliably, and the wrapped error of net/url contains the string.
func parseConfigText(e *pgconn.ParseConfigError) string {
	if other, ok := foreignScheme(e.ConnString); ok {
		return fmt.Sprintf("%s:// is not PostgreSQL; give a URL such as postgres://user@host:5432/database", other)
	}
	text := "the PostgreSQL connection settings cannot be used; give a URL such as postgres://user@host:5432/database"
	if what := parseConfigComplaint(e); what != "" {
		text += ": " + what
	}
	var file *fs.PathError
	if errors.As(e, &file) {
		text += fmt.Sprintf(" (a file: %v)", file.Err)
	}
	return text
}

// parseConfigComplaint returns the message of pgconn without the connection string. The message is
// in a private field. So another error is made, for the same string but without a message. The
// message is the part of the full text that follows the text of this other error. Values in the
// message may come from the string, so text after a colon is cut and quoted text is masked.
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

// registryText describes a response of the registry by its codes. The text of the response is left
// out, because the server may write anything there.
func registryText(e *sr.ResponseError) string {
	text := fmt.Sprintf("%s %s was answered with status %d", e.Method, e.URL, e.StatusCode)
	if e.ErrorCode != 0 {
		text += fmt.Sprintf(", error code %d", e.ErrorCode)
	}
	switch e.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		text += " (check the user and the password)"
	case http.StatusNotFound:
		text += " (check the URL: a registry that does not know a schema answers with error code 40403)"
	}
	return text
}
