package e2e_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/devstack/devtest"
)

// producer is a database of a producer of events. The first call of publishes creates the outbox
// table in this database.
type producer struct {
	t    testing.TB
	url  string
	pool *pgxpool.Pool
}

func newProducer(t testing.TB) *producer {
	t.Helper()
	p := &producer{t: t, url: devtest.Database(t)}
	var err error
	if p.pool, err = pgxpool.New(t.Context(), p.url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.pool.Close)
	return p
}

func (p *producer) exec(sql string, args ...any) {
	p.t.Helper()
	if _, err := p.pool.Exec(p.t.Context(), sql, args...); err != nil {
		p.t.Fatalf("%v\n%s", err, sql)
	}
}

// The method publishes inserts events into the outbox table and creates this table if necessary.
func (p *producer) publishes(account string, versions ...int) {
	p.t.Helper()
	p.exec("CREATE TABLE IF NOT EXISTS outbox (account_id text, version bigint, payload text)")
	for _, v := range versions {
		p.exec("INSERT INTO outbox VALUES ($1, $2, $3)", account, v, string(credit(account, v).Value))
	}
}

// flags returns the flags of a projector that queries this outbox. The query returns more events
// than the projector requests.
func (p *producer) flags() []string {
	return []string{
		"--outbox-url=" + p.url, "--outbox-after=1s",
		"--outbox-query=SELECT account_id, payload FROM outbox WHERE account_id = ANY ($1) AND (version = ANY ($2) OR version > 90)",
	}
}

// The method fetches returns the rows of the audit trail about fetched events of an account, as one
// text.
func (w *world) fetches(account string) (rows string) {
	w.t.Helper()
	err := w.db.QueryRow(w.t.Context(), `SELECT coalesce(string_agg(concat_ws(' ', version, result, class), ', ' ORDER BY version, id), '')
		FROM dlq_action WHERE action = 'fetch' AND account_id = $1 AND topic IS NULL AND actor <> ''`, account).Scan(&rows)
	if err != nil {
		w.t.Fatal(err)
	}
	return rows
}

// TestALostEventIsFetched expects the program to fetch the lost events that the outbox has. An
// account must stay unchanged as long as its missing event is not in the outbox or cannot be
// applied.
func TestALostEventIsFetched(t *testing.T) {
	t.Parallel()
	w, bank := newWorld(t, 2), newProducer(t)
	bank.publishes("lost", 2, 5, 6, 99)
	bank.publishes("headless", 1)
	bank.publishes("poison", 2)
	bank.exec(`UPDATE outbox SET payload = replace(payload, '"0.01"', '0.01') WHERE account_id = 'poison'`)
	w.append(
		credit("lost", 1), credit("lost", 3), credit("lost", 4), credit("lost", 7),
		credit("headless", 2), credit("poison", 1), credit("poison", 3), credit("gone", 1), credit("gone", 3),
	)
	p := w.start(bank.flags()...)

	await(t, "the first hole and the second", w.reads("lost", "7 0.07 false"))
	await(t, "an account without a row", w.reads("headless", "2 0.02 false"))
	await(t, "what is refused", p.logged("the outbox returned events that are not applied", `"account_id":"lost"`, "not asked for"))
	await(t, "the poison", p.logged("missing events from the outbox cannot be applied", "malformed_payload", `"account_id":"poison"`))
	for account, want := range map[string]string{
		"lost": "2 applied, 5 applied, 6 applied", "headless": "1 applied", "poison": "2 poison malformed_payload", "gone": "",
	} {
		if got := w.fetches(account); got != want {
			t.Errorf("audit trail of %s: %q, want %q", account, got, want)
		}
	}
	if now := w.reads("poison", "1 0.01 true 2")() + w.reads("gone", "1 0.01 true 2")(); now != "" {
		t.Error(now)
	}
	await(t, "the counters", p.counted(map[string]int{
		`projector_fetched_events_total{projection="account_balance"}`: 4, `projector_healed_events_total{projection="account_balance"}`: 4,
		`projector_dead_letters_total{class="version_gap",projection="account_balance",topic="` + w.topic + `"}`: 6,
	}))

	// Now the outbox has the right events, so the next query corrects both accounts without an
	// operator.
	bank.publishes("gone", 2)
	bank.exec(`UPDATE outbox SET payload = replace(payload, ':0.01', ':"0.01"')`)
	await(t, "what was poison", w.reads("poison", "3 0.03 false"))
	await(t, "what was not there", w.reads("gone", "3 0.03 false"))

	w.append(credit("lost", 2), credit("lost", 7), credit("lost", 8)) // the event also arrives by Kafka, but later
	await(t, "the next event", w.reads("lost", "8 0.08 false"))
	if got := w.statuses("lost"); got != "map[resolved:3]" {
		t.Errorf("dead letters: %s", got)
	}
	await(t, "ready", p.answers("/readyz", 200, ""))
	p.terminate()
}

// TestAnOutboxThatIsAway expects an unreachable outbox to be reported and queried again later. The
// instance must stay ready.
func TestAnOutboxThatIsAway(t *testing.T) {
	t.Parallel()
	w, bank := newWorld(t, 1), newProducer(t)
	u, err := url.Parse(bank.url)
	if err != nil {
		t.Fatal("the outbox's URL cannot be read")
	}
	name := strings.TrimPrefix(u.Path, "/")
	w.exec(fmt.Sprintf("ALTER DATABASE %q ALLOW_CONNECTIONS false", name))
	p := w.start(bank.flags()...)
	w.append(credit("lost", 1), credit("lost", 3))
	await(t, "the hole", w.reads("lost", "1 0.01 true 2"))
	await(t, "an outbox that takes no connections", p.logged("failing, will retry", "ask the outbox", "--outbox-url (OUTBOX_URL)", "55000"))
	await(t, "ready", p.answers("/readyz", 200, ""))
	w.exec(fmt.Sprintf("ALTER DATABASE %q ALLOW_CONNECTIONS true", name))
	await(t, "an outbox without its table", p.logged("failing, will retry", "ask the outbox", "--outbox-query (OUTBOX_QUERY)", "42P01"))
	await(t, "ready", p.answers("/readyz", 200, ""))
	bank.publishes("lost", 2)
	await(t, "the healing", w.reads("lost", "3 0.03 false"))
	await(t, "that it is over", p.logged("recovered", "ask the outbox"))
	if got := w.statuses("lost"); got != "map[resolved:1]" {
		t.Errorf("dead letters: %s", got)
	}
	p.terminate()
}

// TestAnOutboxOfAnotherProjection expects --outbox-url to be refused for the other built-in
// projections. It also expects an --outbox-query that does not use both parameters to be refused.
func TestAnOutboxOfAnotherProjection(t *testing.T) {
	t.Parallel()
	for _, projection := range []string{"daily_turnover", "account_statement"} {
		status, _, said := once(t, nil, "run", "--projection="+projection, "--outbox-url=postgres://a:hunter2@db/b", "--outbox-query=SELECT $1, $2")
		if status != 2 || !strings.Contains(said, "--outbox-url (OUTBOX_URL): missing events are fetched for --projection=account_balance only, not for "+projection) || strings.Contains(said, "hunter2") {
			t.Errorf("%s: exit status %d: %s", projection, status, said)
		}
	}
	status, _, said := once(t, nil, "run", "--outbox-url=postgres://a:hunter2@db/b", "--outbox-query=SELECT key FROM t WHERE a = ANY ($1)")
	if status != 2 || !strings.Contains(said, "--outbox-query (OUTBOX_QUERY): must select by $1") || strings.Contains(said, "hunter2") {
		t.Errorf("exit status %d: %s", status, said)
	}
}

// TestAnOutboxIsRefusedOnCitus creates the catalog tables of Citus in plain PostgreSQL, so the
// program must treat account_balance as distributed.
func TestAnOutboxIsRefusedOnCitus(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.exec(`SET allow_system_table_mods = on;
		INSERT INTO pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
		SELECT 99999, 'citus', oid, 'public'::regnamespace, false, '13' FROM pg_roles WHERE rolname = current_user;
		CREATE TABLE pg_dist_partition AS SELECT 'account_balance'::regclass::oid AS logicalrelid, 'h'::"char" AS partmethod;
		CREATE TABLE pg_dist_shard AS SELECT 'account_balance'::regclass::oid AS logicalrelid, 1 AS shardid, '-2147483648' AS shardminvalue`)
	run := append([]string{"--brokers=" + w.addrs[0]}, w.flags()[1:]...)
	status, _, said := once(t, []string{"DATABASE_URL=" + w.url}, append([]string{"run", "--outbox-url=" + w.url, "--outbox-query=SELECT $1, $2"}, run...)...)
	if status != 1 || !strings.Contains(said, "missing versions cannot be fetched where Citus distributes the tables: leave out --outbox-url (OUTBOX_URL)") {
		t.Errorf("exit status %d: %s", status, said)
	}
}
