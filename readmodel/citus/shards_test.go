package citus

import (
	"math"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"projector/internal/devstack/devtest"
)

func TestMain(m *testing.M) { devtest.Main(m, nil) }

// TestHashTextIsPostgreSQLs compares hashText with the function of the server, for random texts.
func TestHashTextIsPostgreSQLs(t *testing.T) {
	pool, err := pgxpool.New(t.Context(), devtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.OneOf(rapid.StringN(0, 40, 60), rapid.StringMatching(`[a-z0-9-]{0,60}`)).
			Filter(func(s string) bool { return !strings.Contains(s, "\x00") }).Draw(t, "id")
		var want int32
		if err := pool.QueryRow(t.Context(), "SELECT hashtext($1)", id).Scan(&want); err != nil {
			t.Fatal(err)
		}
		if got := hashText(id); got != want {
			t.Errorf("%q: %d, PostgreSQL has %d", id, got, want)
		}
	})
}

// TestShards shows that an account is in the shard with the highest lower bound that is not above
// the account's hash.
func TestShards(t *testing.T) {
	s := Shards{math.MinInt32, 0}
	for _, id := range []string{"", "a", "acc-1", "acc-2", "acc-3"} {
		want := 0
		if hashText(id) >= 0 {
			want = 1
		}
		if got := s.shardOf(id); got != want {
			t.Errorf("%q with the hash %d is in shard %d, want %d", id, hashText(id), got, want)
		}
	}
	if id := "a"; (Shards{math.MinInt32, hashText(id)}).shardOf(id) != 1 {
		t.Error("a shard's lowest hash is not in it")
	}
}
