package errclass

import (
	"cmp"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"
)

// Postgres classifies an error of pgx, however deeply it is wrapped.
//
// context.DeadlineExceeded is Retry, because it is the deadline of one attempt. So the caller must
// check first whether its own context has ended. context.Canceled is also Retry. A nil error is
// Unknown.
//
// pgconn.SafeToRetry is not used. It may return true if an error occurs while an answer is
// received, and the rows may be committed by then. Only the whole idempotent transaction may be
// repeated.
func Postgres(err error) Class {
	return worst(err, postgresNode, networkNode).class
}

func postgresNode(node error) (finding, bool) {
	switch e := node.(type) { //nolint:errorlint // only this node, not its chain
	case *pgconn.PgError:
		return finding{class: statementClass(e), reason: sqlstateReason(e.Code)}, true
	case *pgconn.ConnectError:
		return connectFinding(e), true
	case *pgconn.ParseConfigError:
		return finding{class: RetryUnready, reason: "config"}, true
	case pgx.ScanArgError:
		// The columns are not those that this build expects, so searching for one faulty row would
		// not help.
		return finding{class: RetryUnready, reason: "scan"}, true
	}
	switch node {
	case pgconn.ErrConnClosed, puddle.ErrClosedPool:
		return finding{class: Retry, reason: "closed"}, true
	case pgx.ErrTxCommitRollback:
		// COMMIT of a failed transaction means that this program has ignored an earlier error.
		return finding{class: Bug, reason: "commit_rollback"}, true
	case pgconn.ErrReadOnlyConnection, pgconn.ErrStandbyConnection,
		pgconn.ErrReadWriteConnection, pgconn.ErrPrimaryConnection:
		// The server does not match target_session_attrs, because a failover is in progress.
		return finding{class: Retry, reason: "not_preferred"}, true
	}
	return finding{}, false
}

// statementClass classifies an error of the server. FATAL and PANIC end the session, so a single
// record is never the cause. It is not the cause of a limit of the server either.
func statementClass(e *pgconn.PgError) Class {
	c := sqlstateClass(e.Code)
	if c == Isolate && (endsSession(e) || isServerLimit(e)) {
		return RetryUnready
	}
	return c
}

// isServerLimit reports whether the server has reached a limit that every write reaches. It then
// assigns no transaction ids until old rows are vacuumed (varsup.c, multixact.c), or a table has
// its largest size (bufmgr.c, md.c). PostgreSQL uses the same SQLSTATE for an index row that is too
// large. Only the source file that reports the error distinguishes them, apart from the message.
func isServerLimit(e *pgconn.PgError) bool {
	return e.Code == "54000" && slices.Contains([]string{"varsup.c", "multixact.c", "bufmgr.c", "md.c"}, e.File)
}

func severityOf(e *pgconn.PgError) string { return cmp.Or(e.SeverityUnlocalized, e.Severity) }

func endsSession(e *pgconn.PgError) bool {
	severity := severityOf(e)
	return severity == "FATAL" || severity == "PANIC"
}

// connectFinding classifies a failure to connect. A record is never the cause, so SQLSTATE 22023
// means a wrong connection option here. An unknown cause is treated as an outage.
func connectFinding(e *pgconn.ConnectError) finding {
	f, ok := search(errors.Unwrap(e), []classifier{postgresNode, networkNode})
	switch {
	case !ok:
		return finding{class: Retry, reason: "connect"}
	case f.class == Isolate:
		return finding{class: RetryUnready, reason: f.reason}
	default:
		return f
	}
}

// sqlstates contains the SQLSTATEs that are not treated like the rest of their class. The source is
// PostgreSQL, Appendix A, "PostgreSQL Error Codes". Each decision is also in sqlstates.txt, with
// which a test compares this map and sqlstateClasses.
var sqlstates = map[string]Class{
	"2200H": RetryUnready, // sequence_generator_limit_exceeded: the sequence of a table that was added is used up
	"25006": RetryReset,   // read_only_sql_transaction: after a failover, a standby
	"25P03": Retry,        // idle_in_transaction_session_timeout: this process was frozen
	"25P04": Retry,        // transaction_timeout
	"54000": Isolate,      // program_limit_exceeded: the index row of one event is too large; see isServerLimit
	"55000": RetryUnready, // object_not_in_prerequisite_state: the database accepts no connections
	"55P02": RetryUnready, // cant_change_runtime_param: wrong connection options
	"55P04": Bug,          // unsafe_new_enum_value_usage
}

// sqlstateClasses gives the class for the first two characters of a SQLSTATE. Codes that are
// missing here are Unknown, so they are retried and reported as an error. P0* (an exception raised
// by a trigger), 38*, 39* and HV* (code outside PostgreSQL), and XX* (corruption) are missing on
// purpose. If you add a class whose messages contain no data, add it to messageClasses
// (redact_known.go) too.
var sqlstateClasses = map[string]Class{
	"03": Bug,          // SQL statement not yet complete
	"08": Retry,        // connection exception
	"0A": RetryReset,   // feature not supported: "cached plan must not change result type" after a migration
	"0B": Bug,          // invalid transaction initiation
	"0L": RetryUnready, // invalid grantor
	"0P": RetryUnready, // invalid role specification
	"21": Bug,          // cardinality violation: the same key twice in one upsert
	"22": Isolate,      // data exception
	"23": Isolate,      // integrity constraint violation
	"24": Bug,          // invalid cursor state
	"25": Bug,          // invalid transaction state; 25P02: a statement was sent after a failed one
	"26": RetryReset,   // invalid SQL statement name: the prepared statement is lost
	"28": RetryUnready, // invalid authorization specification
	"2D": Bug,          // invalid transaction termination
	"34": Bug,          // invalid cursor name
	"3B": Bug,          // savepoint exception
	"3D": RetryUnready, // invalid catalog name: no such database
	"3F": RetryUnready, // invalid schema name
	"40": Retry,        // transaction rollback: serialization failure, deadlock
	"42": RetryUnready, // syntax error or access rule violation: a grant or a migration is missing
	"53": Retry,        // insufficient resources: disk, memory, connections
	"54": Bug,          // program limit exceeded
	"55": Retry,        // object not in prerequisite state: lock not available
	"57": Retry,        // operator intervention: shutdown, cancel, starting up
	"58": Retry,        // system error: I/O
	"72": Retry,        // snapshot too old
	"F0": RetryUnready, // configuration file error
}

func sqlstateClass(code string) Class {
	if !wellFormed(code) {
		return Unknown
	}
	if c, ok := sqlstates[code]; ok {
		return c
	}
	return sqlstateClasses[code[:2]]
}

// sqlstateReason returns the label for one SQLSTATE. An invalid code is not used as a label,
// because the set of labels must be bounded.
func sqlstateReason(code string) string {
	if !wellFormed(code) {
		return "sqlstate"
	}
	return code
}

func wellFormed(code string) bool {
	if len(code) != 5 {
		return false
	}
	for _, r := range code {
		if (r < '0' || r > '9') && (r < 'A' || r > 'Z') {
			return false
		}
	}
	return true
}
