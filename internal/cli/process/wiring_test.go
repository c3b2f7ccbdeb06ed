package process

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/readmodel/readmodeltest"
)

// TestAFailoverResetsThePoolOfReaders shows that the readers get new connections, too, when the server
// of the connections may no longer be the primary.
func TestAFailoverResetsThePoolOfReaders(t *testing.T) {
	t.Parallel()
	p := &Process{pool: readmodeltest.OpenPool(t), reading: readmodeltest.OpenPool(t)}
	backend := func(pool *pgxpool.Pool) (pid int) {
		t.Helper()
		if err := pool.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
			t.Fatal(err)
		}
		return pid
	}
	writing, reading := backend(p.pool), backend(p.reading)
	database{reset: p.resetPools}.Reset()
	if backend(p.pool) == writing || backend(p.reading) == reading {
		t.Error("a connection of before the failover is used again")
	}
}
