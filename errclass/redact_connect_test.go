package errclass_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"projector/errclass"
	"projector/internal/devstack/devtest"
)

// A part of a password that was taken for the user or the database is withheld, also where the
// server's message repeats it.
func TestSafeHidesNamesThatTheServerRepeats(t *testing.T) {
	for _, c := range []struct{ credentials, database, code, message string }{
		{"a?hunter2", "bank", "28P01", `password authentication failed for user "a?hunter2"`},
		{"app:pw", "hunter2@db", "3D000", `database "hunter2@db" does not exist`},
	} {
		t.Run(c.code, func(t *testing.T) {
			server := devtest.Backend(t, func(backend *pgproto3.Backend) {
				backend.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: c.code, Message: c.message})
				_ = backend.Flush()
			})
			_, err := pgconn.Connect(t.Context(), fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", c.credentials, server, c.database))
			if safe := errclass.Safe(err); !strings.Contains(safe, c.code) || strings.Contains(safe, "hunter2") {
				t.Errorf("lacks the SQLSTATE, or leaks: %s", safe)
			}
		})
	}
}
