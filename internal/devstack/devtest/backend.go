package devtest

import (
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// Backend starts a server that accepts one connection of the PostgreSQL protocol. It reads the startup
// message, and the function answer sends what follows. Backend returns the server's address.
func Backend(t testing.TB, answer func(*pgproto3.Backend)) (addr string) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
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
		answer(backend)
	}()
	return listener.Addr().String()
}
