//go:build faults

package faulttest

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/e2e/wait"
	"projector/faulttest/journal"
	"projector/faulttest/pgproxy"
	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
	"projector/internal/testbank"
	"projector/internal/testbank/compare"
)

// patience is the default time limit. A step of a fault can have another limit.
const patience = 3 * time.Minute

// scene is one system: servers, replicas, producer, oracle and watcher.
type scene struct {
	t       testing.TB
	seed    uint64
	rnd     *rand.Rand
	setting setting

	addrs  []string
	reader compare.Reader
	dlq    string
	admin  *kadm.Client
	kafka  *kgo.Client

	cluster *devstack.Postgres // the cluster in use
	url     string             // the database's URL without the proxy
	db      *pgxpool.Pool      // a pool of that URL
	proxy   *pgproxy.Proxy
	through string // the URL through the proxy, which the replicas use

	path     string // path of the journal
	producer *journal.Producer
	feed     *feed
	replicas []*replica
	watch    *watcher
	healedAt time.Time
	// uncounted means that the counters of the present replicas need not equal those of the oracle.
	// It is true, for example, after a replica was killed or frozen, after the database lost
	// counted records, or after an operator skipped records.
	uncounted bool
}

// setting holds the options of a scene. Zero values select the defaults.
type setting struct {
	partitions int32
	records    int           // number of records of the stream
	during     time.Duration // duration of the stream, which must be longer than the fault; default 20 s
	replicas   int           // number of replicas at the start; -1 means none
	clean      bool          // the stream has broken events in partition 0 only
	again      bool          // each part of the stream is sent twice
	database   func(*scene)  // starts the database; default: startPostgres
	postgres   []string      // server parameters: name, value, name, value, and so on
	session    string        // session timeout of the replicas; default 3s
	flags      []string      // flags of the replicas
	params     string        // parameters of the replicas' database URL
	dlqConfig  map[string]*string
	topic      map[string]*string // configs of the topic
	recovers   time.Duration      // time limit for the lag to return to 0; default 30 s
	memory     int64              // memory limit of a replica in bytes; default 512 MiB
}

func (s setting) withDefaults() setting {
	if s.database == nil {
		s.database = (*scene).startPostgres
	}
	or := func(n *int, usual int) {
		if *n == 0 {
			*n = usual
		}
	}
	or(&s.records, 8000)
	or(&s.replicas, 2)
	if s.partitions == 0 {
		s.partitions = 4
	}
	if s.during == 0 {
		s.during = 20 * time.Second
	}
	if s.session == "" {
		s.session = "3s"
	}
	if s.recovers == 0 {
		s.recovers = 30 * time.Second
	}
	if quick { // CI's machine is slow
		s.recovers *= 4
	}
	if s.memory == 0 {
		s.memory = 512 << 20
	}
	return s
}

// newScene creates a topic, a database and a proxy. It starts no replica.
func newScene(t testing.TB, brokers devtest.Cluster, set setting) *scene {
	t.Helper()
	s := &scene{t: t, setting: set.withDefaults(), addrs: brokers.Addrs()}
	s.seed = seed(t)
	s.rnd = rand.New(rand.NewPCG(s.seed, 3))
	s.kafka = must(kgo.NewClient(kgo.SeedBrokers(s.addrs...)))(t)
	t.Cleanup(s.kafka.Close)
	s.admin = kadm.NewClient(s.kafka)
	topic := devtest.Topic(t, s.addrs, s.setting.partitions)
	s.reader = compare.Reader{Topic: topic, Group: topic + "-group", Projection: "account_balance"}
	s.dlq = topic + ".dlq"
	for name, value := range s.setting.topic {
		_, err := s.admin.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: name, Value: value}}, topic)
		check(t, err)
	}
	if s.setting.dlqConfig != nil {
		_, err := s.admin.CreateTopic(t.Context(), s.setting.partitions, -1, s.setting.dlqConfig, s.dlq)
		check(t, err)
	}
	s.setting.database(s)
	s.path = filepath.Join(t.TempDir(), "journal")
	s.producer = must(journal.Open(s.path, topic, s.addrs))(t)
	t.Cleanup(func() { _ = s.producer.Close() })
	return s
}

func (s *scene) startPostgres() {
	s.t.Helper()
	s.cluster = must(devstack.StartPostgres(s.t.Context(), devstack.PostgresOptions{
		TempRoot: devtest.MemoryFolder(), Settings: pairs(s.setting.postgres),
	}))(s.t)
	s.closeAtEnd(s.cluster)
	database := must(s.cluster.NewDatabase(s.t.Context(), ""))(s.t)
	devtest.Schema(s.t, database)
	s.use(database)
	s.audit()
	proxy, through, err := pgproxy.ListenBefore(database)
	if err != nil {
		s.t.Fatal(err)
	}
	s.proxy = proxy
	s.t.Cleanup(func() { _ = s.proxy.Close() })
	s.through = through + "&idle_in_transaction_session_timeout=3000&lock_timeout=1000" + s.setting.params
}

func (s *scene) closeAtEnd(p *devstack.Postgres) {
	s.t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			s.t.Errorf("close PostgreSQL: %v", err)
		}
	})
}

// use connects the scene to the database with this URL.
func (s *scene) use(database string) {
	s.t.Helper()
	s.url = database
	s.db = must(pgxpool.New(s.t.Context(), database))(s.t)
	s.t.Cleanup(s.db.Close)
}

// moveTo connects the scene, the proxy and the watcher to another cluster. The name of the database
// stays the same.
func (s *scene) moveTo(p *devstack.Postgres) {
	s.t.Helper()
	u := must(url.Parse(s.url))(s.t)
	s.cluster, s.uncounted = p, true
	s.use(p.DatabaseURL(strings.TrimPrefix(u.Path, "/")))
	s.watch.follow(s.db)
	s.proxy.SwitchTo(p.Addr())
}

// audit counts every write that does not raise a version. It counts with a sequence, because a
// rollback does not change a sequence.
func (s *scene) audit() {
	s.t.Helper()
	s.exec(`CREATE SEQUENCE version_audit_attempts;
		CREATE TABLE version_audit (account_id text, old bigint, new bigint, at timestamptz DEFAULT clock_timestamp());
		CREATE FUNCTION version_audit() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
		BEGIN
			PERFORM nextval('version_audit_attempts');
			INSERT INTO version_audit VALUES (NEW.account_id, OLD.version, NEW.version);
			RETURN NEW;
		END $$;
		CREATE TRIGGER a_version_audit BEFORE UPDATE ON account_balance
		FOR EACH ROW WHEN (NEW.version <= OLD.version) EXECUTE FUNCTION version_audit();`)
}

func (s *scene) exec(sql string, args ...any) {
	s.t.Helper()
	if _, err := s.db.Exec(s.t.Context(), sql, args...); err != nil {
		s.t.Fatalf("%v\n%s", err, sql)
	}
}

func (s *scene) positions() map[int32]int64 {
	s.t.Helper()
	return must(s.reader.Positions(s.t.Context(), s.db))(s.t)
}

func (s *scene) ends() map[int32]int64 {
	s.t.Helper()
	var ends map[int32]int64
	wait.Until(s.t, patience, "the end offsets", func() (failure string) { // a partition may have no leader for a moment
		var err error
		if ends, err = compare.Ends(s.t.Context(), s.admin, s.reader.Topic); err != nil {
			failure = err.Error()
		}
		return failure
	})
	return ends
}

// The method arrived is a check for await. It succeeds when every partition is consumed to its end.
func (s *scene) arrived() string {
	positions, ends := s.positions(), s.ends()
	if maps.Equal(positions, ends) {
		return ""
	}
	return fmt.Sprintf("positions %v, ends %v", positions, ends)
}

// The method passed returns a check for await. It succeeds when the positions add up to at least n
// records.
func (s *scene) passed(n int64) func() string {
	return func() string {
		if at := sum(s.positions()); at < n {
			return fmt.Sprintf("at %d, waiting for %d", at, n)
		}
		return ""
	}
}

// The method moves returns a check for await. It succeeds when the positions of the partitions are
// higher than they were when moves was called.
func (s *scene) moves(partitions ...int32) func() string {
	before := s.positions()
	return func() string {
		now := s.positions()
		for _, p := range partitions {
			if now[p] <= before[p] {
				return fmt.Sprintf("partition %d is at %d", p, now[p])
			}
		}
		return ""
	}
}

func (s *scene) await(what string, check func() string) {
	s.t.Helper()
	wait.Until(s.t, patience, what, check)
}

// awaitUnderLoad is like await. On a slow machine, the feed may end during a fault. Then awaitUnderLoad
// sends more events, so that the replicas always have something to do.
func (s *scene) awaitUnderLoad(what string, holds func() string) {
	s.t.Helper()
	var sent time.Time
	s.await(what, func() string {
		if s.feed != nil && s.feed.ended() && time.Since(sent) > time.Second {
			sent = time.Now()
			s.sendMore()
		}
		return holds()
	})
}

// sendMore sends new accounts to all partitions, and a broken event.
func (s *scene) sendMore() {
	s.t.Helper()
	more := s.newcomers(max(int(s.setting.partitions), s.setting.records/100))
	more = append(more, testbank.Record{Partition: 0, Key: []byte("nobody"), Value: []byte("poison " + testbank.Marker)})
	check(s.t, s.producer.Send(s.t.Context(), more))
}

func (s *scene) pause(d time.Duration) { wait.Pass(s.t.Context(), d) }

// The method between returns a random duration.
func (s *scene) between(from, to time.Duration) time.Duration {
	return from + time.Duration(s.rnd.Int64N(int64(to-from)+1))
}

func sum(offsets map[int32]int64) (total int64) {
	for _, o := range offsets {
		total += o
	}
	return total
}

func pairs(list []string) map[string]string {
	settings := map[string]string{}
	for i := 0; i+1 < len(list); i += 2 {
		settings[list[i]] = list[i+1]
	}
	return settings
}

// seed returns PROJECTOR_TEST_SEED, or a new seed for each run if this variable is not set. It
// prints the seed.
func seed(t testing.TB) uint64 {
	t.Helper()
	n := uint64(time.Now().UnixNano())
	if text := os.Getenv("PROJECTOR_TEST_SEED"); text != "" {
		n = must(strconv.ParseUint(text, 10, 64))(t)
	}
	fmt.Fprintf(os.Stderr, "%s: PROJECTOR_TEST_SEED=%d repeats its schedule\n", t.Name(), n)
	return n
}

// records returns the scene's stream.
func (s *scene) records() []testbank.Record {
	records := testbank.Generate(testbank.Options{
		Seed: s.seed, Records: s.setting.records, Partitions: s.setting.partitions, Accounts: max(40, s.setting.records/50), Clean: s.setting.clean,
	})
	if !s.setting.clean {
		return records
	}
	var mixed []testbank.Record
	for i, r := range records {
		if mixed = append(mixed, r); i%50 == 10 {
			mixed = append(mixed, testbank.Record{Partition: 0, Key: []byte("nobody"), Value: []byte("poison " + testbank.Marker)})
		}
	}
	return mixed
}
