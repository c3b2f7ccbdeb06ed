//go:build matrix

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/e2e/process"
	"projector/internal/devstack/devtest"
	"projector/internal/testbank"
)

// TestMovedByLogicalReplication moves the read model to a newer major version of PostgreSQL while a
// consumer runs. It uses logical replication, as docs/postgres.md says. The consumer is then
// started on the new server. There are two cases: all rows are replicated, or some rows are
// missing.
func TestMovedByLogicalReplication(t *testing.T) {
	for name, behind := range map[string]bool{"all replicated": false, "replica behind": true} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PG_BINDIR", "")
			t.Setenv("PROJECTOR_POSTGRES_VERSION", "15")
			from := devtest.Postgres(t, "wal_level", "logical").URL()
			t.Setenv("PROJECTOR_POSTGRES_VERSION", "18")
			to := devtest.Postgres(t).URL()
			for _, database := range []string{from, to} {
				if err := process.Migrate(binary)(t.Context(), database); err != nil {
					t.Fatal(err)
				}
			}
			w, p, finish := working(t, from)
			w.exec("CREATE PUBLICATION projector FOR ALL TABLES")

			old := w.db
			w.moveTo(to)
			w.exec("TRUNCATE projector_schema_version, repair_policy, dlq_action_lock")
			w.exec(fmt.Sprintf("CREATE SUBSCRIPTION projector CONNECTION '%s' PUBLICATION projector", strings.ReplaceAll(from, "'", "''")))
			await(t, "all tables are copied", w.counts("SELECT count(*) FROM pg_subscription_rel WHERE srsubstate <> 'r'", 0))
			await(t, "the stream arrives", w.passed(sum(w.positions())+1))
			if behind {
				w.exec("ALTER SUBSCRIPTION projector DISABLE")
				await(t, "the subscription rests", w.counts("SELECT count(*) FROM pg_stat_subscription WHERE pid IS NOT NULL", 0))
			}
			finish()
			at := sum(w.positions())
			p.terminate()
			if behind {
				w.exec("ALTER SUBSCRIPTION projector SET (slot_name = NONE)") // the old server may be unreachable at this step
			} else {
				await(t, "the new server knows what the old one knows", func() string {
					if known := must(w.reader().Positions(t.Context(), old))(t); !maps.Equal(known, w.positions()) {
						return fmt.Sprintf("old %v, new %v", known, w.positions())
					}
					return ""
				})
				w.exec("ALTER SUBSCRIPTION projector DISABLE")
			}
			w.exec("DROP SUBSCRIPTION projector")
			for _, table := range []string{"dlq_action", "repair_request"} {
				w.exec(fmt.Sprintf("SELECT setval(pg_get_serial_sequence('%[1]s', 'id'), max(id)) FROM %[1]s HAVING max(id) > 0", table))
			}

			p = w.start()
			w.exact(w.oracle(), repeated)
			if behind {
				await(t, "it says what it reads again", p.logged("the position was taken back"))
				t.Logf("the replica stood at %d", at)
			}
			w.worksOn(p)
		})
	}
}

// TestMovedByPgUpgrade stops the consumer and upgrades the whole server by pg_upgrade from
// $PROJECTOR_UPGRADE_FROM to $PROJECTOR_UPGRADE_TO. The consumer then continues on the new server.
func TestMovedByPgUpgrade(t *testing.T) {
	older, newer := os.Getenv("PROJECTOR_UPGRADE_FROM"), os.Getenv("PROJECTOR_UPGRADE_TO")
	if older == "" || newer == "" {
		t.Fatal("name two folders of PostgreSQL's programs in PROJECTOR_UPGRADE_FROM and PROJECTOR_UPGRADE_TO, or use make test-pg-upgrade")
	}
	t.Setenv("PG_BINDIR", older)
	old := devtest.Postgres(t)
	if err := process.Migrate(binary)(t.Context(), old.URL()); err != nil {
		t.Fatal(err)
	}
	w, p, finish := working(t, old.URL())
	p.terminate()
	w.db.Close()
	upgraded, err := old.Upgrade(t.Context(), newer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = upgraded.Close(context.Background()) })
	w.moveTo(upgraded.URL())
	w.exec("ANALYZE")

	p = w.start()
	finish()
	w.exact(w.oracle(), repeated)
	w.worksOn(p)
}

// The function working returns a test environment on a migrated database. A stream continues to
// arrive, the consumer has processed a part of it, and one repair was made.
func working(t *testing.T, database string) (w *world, p *program, finish func()) {
	t.Helper()
	w = newWorldOn(t, devtest.Broker(t).Addrs(), database, 4)
	total := scaled(12_000)
	finish = w.feed(testbank.Generate(testbank.Options{Seed: seed(t), Records: total, Partitions: w.partitions, Accounts: 300}), total/200, 100*time.Millisecond)
	p = w.start()
	await(t, "some work", w.passed(int64(total/5)))
	w.repaired("first", 1)
	return w, p, finish
}

// worksOn makes another repair on the new server and stops the consumer. The audit trail must have
// both repairs.
func (w *world) worksOn(p *program) {
	w.t.Helper()
	w.repaired("second", 2)
	if status, _, stderr := once(w.t, []string{"DATABASE_URL=" + w.url}, "audit", "verify"); status != 0 {
		w.t.Errorf("audit verify: exit %d: %s", status, stderr)
	}
	p.terminate()
	w.atRest()
}

// moveTo connects the test environment to another database.
func (w *world) moveTo(databaseURL string) {
	w.t.Helper()
	db, err := pgxpool.New(w.t.Context(), databaseURL)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(db.Close)
	w.db, w.url = db, databaseURL
}

// The method repaired discards one dead letter, which must become the nth row of the audit trail.
func (w *world) repaired(reason string, n int) {
	w.t.Helper()
	env := []string{"DATABASE_URL=" + w.url, "KAFKA_BROKERS=" + w.addrs[0]}
	status, list, stderr := once(w.t, env, "dlq", "list", "--topic="+w.topic, "--class=malformed_payload", "--status=open", "--output=json")
	var letter struct {
		Partition int   `json:"dlq_partition"`
		Offset    int64 `json:"dlq_offset"`
	}
	if err := json.NewDecoder(strings.NewReader(list)).Decode(&letter); status != 0 || err != nil {
		w.t.Fatalf("dlq list: exit %d, %v: %s", status, err, stderr)
	}
	status, _, stderr = once(w.t, env, "dlq", "discard", "--topic="+w.topic, fmt.Sprintf("--dlq-partition=%d", letter.Partition),
		fmt.Sprintf("--dlq-offset=%d", letter.Offset), "--reason="+reason, "--yes")
	if status != 0 {
		w.t.Fatalf("dlq discard: exit %d: %s", status, stderr)
	}
	await(w.t, "the audit trail", w.counts("SELECT count(*) FROM dlq_action", n))
}
