package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/devstack/devtest"
	"projector/internal/testbank"
)

// world is the environment of a test: its own topic, consumer group and database.
type world struct {
	t          testing.TB
	addrs      []string
	topic      string
	group      string
	dlq        string
	partitions int32
	url        string // database URL
	db         *pgxpool.Pool
	kafka      *kgo.Client
	admin      *kadm.Client
}

// newWorld returns a test environment on the broker that the environment variables select.
func newWorld(t testing.TB, partitions int32) *world {
	t.Helper()
	return newWorldOn(t, devtest.Broker(t).Addrs(), devtest.Database(t), partitions)
}

func newWorldOn(t testing.TB, addrs []string, databaseURL string, partitions int32) *world {
	t.Helper()
	w := &world{t: t, addrs: addrs, url: databaseURL, partitions: partitions}
	if partitions > 0 {
		w.topic = devtest.Topic(t, addrs, partitions)
	}
	w.name(w.topic)
	db, err := pgxpool.New(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w.db = db
	w.kafka = w.client()
	w.admin = kadm.NewClient(w.kafka)
	return w
}

func (w *world) name(topic string) { w.topic, w.group, w.dlq = topic, topic+"-group", topic+".dlq" }

func (w *world) client(opts ...kgo.Opt) *kgo.Client {
	w.t.Helper()
	return devtest.Client(w.t, w.addrs, opts...)
}

// flags returns the flags of a projector in this test environment. The given flags come last, so
// they override the others.
func (w *world) flags(more ...string) []string {
	return append([]string{
		"run", "--topic=" + w.topic, "--group=" + w.group, "--listen=127.0.0.1:0", "--log-format=json",
		"--retry-initial=200ms", "--retry-max=2s", "--ignore-event-types=" + testbank.IgnoredType,
	}, more...)
}

// start runs a projector.
func (w *world) start(more ...string) *program {
	w.t.Helper()
	return w.startOn(w.url, more...)
}

// startOn runs a projector on another database URL.
func (w *world) startOn(databaseURL string, more ...string) *program {
	w.t.Helper()
	env := []string{"DATABASE_URL=" + databaseURL}
	for i, addr := range w.addrs {
		if i == 0 {
			env = append(env, "KAFKA_BROKERS="+addr)
		}
	}
	return launch(w.t, []string{password(w.t, databaseURL)}, env, w.flags(more...)...)
}

func password(t testing.TB, databaseURL string) string {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal("the database's URL cannot be read")
	}
	secret, _ := u.User.Password()
	return secret
}

// exec runs SQL in the test's database.
func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.db.Exec(w.t.Context(), sql, args...); err != nil {
		w.t.Fatalf("%v\n%s", err, sql)
	}
}

// The method counts returns a check for await. It succeeds when the query returns n.
func (w *world) counts(query string, n int) func() string {
	return func() string {
		var got int
		if err := w.db.QueryRow(w.t.Context(), query).Scan(&got); err != nil || got != n {
			return fmt.Sprintf("%s: %d, want %d: %v", query, got, n, err)
		}
		return ""
	}
}

// seed returns PROJECTOR_TEST_SEED, or a new seed for each run if this variable is not set. The
// seed is printed if the test fails.
func seed(t testing.TB) uint64 {
	t.Helper()
	n := uint64(time.Now().UnixNano())
	if text := os.Getenv("PROJECTOR_TEST_SEED"); text != "" {
		var err error
		if n, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("PROJECTOR_TEST_SEED: %v", err)
		}
	}
	t.Logf("PROJECTOR_TEST_SEED=%d repeats this run", n)
	return n
}

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 2)) }

// scaled returns a smaller n under the race detector, because the program is then ten times slower.
func scaled(n int) int {
	if raceEnabled {
		return n / 5
	}
	return n
}
