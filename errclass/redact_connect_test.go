package errclass_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"projector/errclass"
)

// A part of a password that was taken for the user or the database is withheld, also where the
// server's message repeats it.
func TestSafeHidesNamesThatTheServerRepeats(t *testing.T) {
	for _, c := range []struct{ credentials, database, code, message string }{
		{"a?hunter2", "bank", "28P01", `password authentication failed for user "a?hunter2"`},
		{"app:pw", "hunter2@db", "3D000", `database "hunter2@db" does not exist`},
	} {
		t.Run(c.code, func(t *testing.T) {
			server := refusingServer(t, &pgproto3.ErrorResponse{Severity: "FATAL", Code: c.code, Message: c.message})
			_, err := pgconn.Connect(t.Context(), fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", c.credentials, server, c.database))
			if safe := errclass.Safe(err); !strings.Contains(safe, c.code) || strings.Contains(safe, "hunter2") {
				t.Errorf("lacks the SQLSTATE, or leaks: %s", safe)
			}
		})
	}
}

// refusingServer answers the first connection with a refusal.
func refusingServer(t *testing.T, refusal *pgproto3.ErrorResponse) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		backend := pgproto3.NewBackend(conn, conn)
		if _, err := backend.ReceiveStartupMessage(); err != nil {
			return
		}
		backend.Send(refusal)
		_ = backend.Flush()
	}()
	return listener.Addr().String()
}
