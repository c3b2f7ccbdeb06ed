package errclass_test

import (
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"projector/errclass"
)

// The SQLSTATE decides how an error is handled. The text for the log contains no row and no
// payload.
func ExamplePostgres() {
	for _, err := range []error{
		&pgconn.PgError{Severity: "FATAL", Code: "57P01", Message: "terminating connection due to administrator command"},
		&pgconn.PgError{Severity: "ERROR", Code: "42501", Message: "permission denied for table account_balance"},
		&pgconn.PgError{Severity: "ERROR", Code: "23514", ConstraintName: "no_overdraft", Detail: "Failing row contains (acc-1, EUR, -10.25)."},
	} {
		class := errclass.Postgres(fmt.Errorf("write batch: %w", err))
		fmt.Printf("%s: %s, unready: %t\n", errclass.Reason(err), class, class.Unready())
	}
	// Output:
	// 57P01: retry, unready: false
	// 42501: retry_loud, unready: true
	// 23514: isolate, unready: false
}
