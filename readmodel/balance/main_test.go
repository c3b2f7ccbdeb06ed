package balance_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/devstack/devtest"
	"projector/readmodel"
)

func TestMain(m *testing.M) {
	devtest.Main(m, func(ctx context.Context, url string) error {
		_, err := readmodel.Migrate(ctx, url)
		return err
	})
}

// openPool opens a new, migrated database.
func openPool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool, err := readmodel.OpenPool(t.Context(), devtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

var partition = readmodel.Partition{Group: "g", Topic: "events"}
