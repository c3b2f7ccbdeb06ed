package errclass_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"projector/errclass"
)

// userTableError is an error about a table of the user, for which the projector has no remedy.
type userTableError struct{ error }

func (userTableError) Remedy() string  { return "" }
func (e userTableError) Unwrap() error { return e.error }

// TestRemedy shows that Remedy has advice for a check constraint. It has none for other errors, and
// none if the error has its own, empty remedy, because constraints on a user's own table are the
// user's decision.
func TestRemedy(t *testing.T) {
	check := fmt.Errorf("write: %w", &pgconn.PgError{Code: "23514"})
	if text := errclass.Remedy(check); !strings.Contains(text, "change the constraint") {
		t.Errorf("a check: %q", text)
	}
	if text := errclass.RefusedRow(check); !strings.HasPrefix(text, "PostgreSQL refused the row: ") || !strings.HasSuffix(text, errclass.Remedy(check)) {
		t.Errorf("a refused row: %q", text)
	}
	for _, err := range []error{fmt.Errorf("write: %w", userTableError{check}), &pgconn.PgError{Code: "22003"}, errors.New("another")} {
		if text := errclass.Remedy(err); text != "" {
			t.Errorf("%v: %q", err, text)
		}
	}
}

// endable is a context whose deadline passes when its channel is closed.
type endable struct {
	context.Context
	ended chan struct{}
}

func (e endable) Done() <-chan struct{} { return e.ended }

func (e endable) Err() error {
	select {
	case <-e.ended:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// The test server accepts PostgreSQL's first message and sends nothing, like a Kafka broker. The
// deadline passes when the server has the message.
func TestAServerThatIsNotPostgreSQLIsNamed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	for _, mode := range []string{"prefer", "disable", "require"} {
		ctx := endable{t.Context(), make(chan struct{})}
		go func() {
			if conn, err := listener.Accept(); err == nil {
				_, _ = conn.Read(make([]byte, 1024))
				close(ctx.ended)
				_, _ = io.Copy(io.Discard, conn) // until the client hangs up
				_ = conn.Close()
			}
		}()
		_, err := pgconn.Connect(ctx, fmt.Sprintf("postgres://u@%s/bank?sslmode=%s", listener.Addr(), mode))
		if text := errclass.Safe(err); !strings.Contains(text, "does not answer as PostgreSQL: check host and port") {
			t.Errorf("%s: %s", mode, text)
		}
	}
	_, err = pgconn.Connect(t.Context(), "postgres://u@127.0.0.1:1/bank")
	if text := errclass.Safe(err); strings.Contains(text, "does not answer as") {
		t.Errorf("nothing listens: %s", text)
	}
}
