package errclass

import (
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"
)

// Postgres decides about an error of pgx, wrapped in any depth.
//
// context.DeadlineExceeded is Retry: the deadline of one attempt. The end of
// the caller's own context is for the caller to notice before asking;
// context.Canceled, should it get here, is Retry. A nil error is Unknown.
//
// pgconn.SafeToRetry is not asked: it is true when the reply to COMMIT was lost
// although the rows are there. Only the whole idempotent transaction is safe.
func Postgres(err error) Class {
	return worst(err, postgresNode, networkNode).class
}

// postgresNode judges the errors of pgx, pgconn and pgxpool.
func postgresNode(node error) (finding, bool) {
	switch e := node.(type) { //nolint:errorlint // one node is meant, not its chain
	case *pgconn.PgError:
		return finding{class: statementClass(e), reason: sqlstateReason(e.Code)}, true
	case *pgconn.ConnectError:
		return connectFinding(e), true
	case *pgconn.ParseConfigError:
		return finding{class: RetryLoud, reason: "config"}, true
	case pgx.ScanArgError:
		// Never row by row: the columns are not what this build expects.
		return finding{class: RetryLoud, reason: "scan"}, true
	}
	switch node {
	case pgconn.ErrConnClosed, puddle.ErrClosedPool:
		return finding{class: Retry, reason: "closed"}, true
	case pgx.ErrTxCommitRollback:
		// COMMIT of a failed transaction: an error was passed over before it.
		return finding{class: Bug, reason: "commit_rollback"}, true
	case pgconn.ErrReadOnlyConnection, pgconn.ErrStandbyConnection,
		pgconn.ErrReadWriteConnection, pgconn.ErrPrimaryConnection:
		// target_session_attrs is not met: a failover under way.
		return finding{class: Retry, reason: "not_preferred"}, true
	}
	return finding{}, false
}

// statementClass decides about an error of the server. FATAL and PANIC end the
// session, so they are never about one record.
func statementClass(e *pgconn.PgError) Class {
	c := sqlstateClass(e.Code)
	if c == Isolate && endsSession(e) {
		return RetryLoud
	}
	return c
}

func endsSession(e *pgconn.PgError) bool {
	severity := e.SeverityUnlocalized
	if severity == "" {
		severity = e.Severity
	}
	return severity == "FATAL" || severity == "PANIC"
}

// connectFinding decides about a connection that was not made. No record is to
// blame here: 22023 is a wrong connection option. What gives no sign of its
// own is an outage.
func connectFinding(e *pgconn.ConnectError) finding {
	f, ok := search(errors.Unwrap(e), []judge{postgresNode, networkNode})
	switch {
	case !ok:
		return finding{class: Retry, reason: "connect"}
	case f.class == Isolate:
		return finding{class: RetryLoud, reason: f.reason}
	default:
		return f
	}
}
