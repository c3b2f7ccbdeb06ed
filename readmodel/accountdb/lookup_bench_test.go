package accountdb_test

import (
	"fmt"
	"testing"

	"projector/projection"
	"projector/readmodel/accountdb"
)

// BenchmarkLookUp reads accounts with and without parked events.
func BenchmarkLookUp(b *testing.B) {
	for _, size := range []struct{ accounts, parked int }{{512, 0}, {512, 20}, {1, 10_000}} {
		b.Run(fmt.Sprintf("accounts=%d/parked=%d", size.accounts, size.parked), func(b *testing.B) {
			pool := openPool(b)
			ids := make([]string, size.accounts)
			for i := range ids {
				ids[i] = fmt.Sprintf("acc-%08d", i)
			}
			_, err := pool.Exec(b.Context(), `
				WITH a AS (INSERT INTO account_balance (account_id, balance, version, status)
				           SELECT id, 0, 1, 'open' FROM unnest($1::text[]) AS id RETURNING account_id)
				INSERT INTO parked_event (account_id, version, class, event_id, expected_version, topic, partition, "offset",
				                          record_timestamp, key, value, headers)
				SELECT a.account_id, 2 + v, 'version_gap', 'event ' || v, 2, 'events', 0, v, 0,
				       a.account_id::bytea, convert_to(repeat('x', 300), 'UTF8'), ARRAY['traceparent', repeat('t', 55), 'source', 'core']::bytea[]
				FROM a, generate_series(1, $2) AS v`, ids, size.parked)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				n := 0
				err := accountdb.LookUp(b.Context(), pool, ids, func(*projection.StoredAccount) { n++ })
				if err != nil || n != len(ids) {
					b.Fatal(n, err)
				}
			}
		})
	}
}
