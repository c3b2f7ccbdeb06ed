package devtest_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
)

var migrations atomic.Int32

func TestMain(m *testing.M) {
	devtest.Main(m, func(ctx context.Context, databaseURL string) error {
		migrations.Add(1)
		return execSQL(ctx, databaseURL, "create table account (id text primary key)")
	})
}

func execSQL(ctx context.Context, databaseURL, statement string) error {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, statement)
	return err
}

func TestEachDatabaseIsFreshAndMigrated(t *testing.T) {
	for i := range 3 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			// Each test inserts the same key, so an insert fails if two tests share a database.
			if err := execSQL(t.Context(), devtest.Database(t), "insert into account values ('same')"); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		if got := migrations.Load(); got != 1 {
			t.Errorf("migrations: got %d, want 1", got)
		}
	})
}

func TestDatabaseIsGoneAfterItsTest(t *testing.T) {
	var url string
	var conn *pgx.Conn
	t.Run("user", func(t *testing.T) {
		url = devtest.Database(t)
		var err error
		if conn, err = pgx.Connect(t.Context(), url); err != nil { // the session stays open on purpose
			t.Fatal(err)
		}
	})
	if err := conn.Ping(t.Context()); err == nil {
		t.Error("a session outlived its database")
	}
	if err := execSQL(t.Context(), url, "select 1"); err == nil {
		t.Error("the database is still there")
	}
}

func TestPostgresIsPrivate(t *testing.T) {
	cluster := devtest.Postgres(t, "max_connections", "23")
	url, err := cluster.NewDatabase(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	devtest.Schema(t, url)
	if err := execSQL(t.Context(), url, "insert into account values ('private')"); err != nil {
		t.Error(err)
	}
	if err := cluster.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := execSQL(t.Context(), devtest.Database(t), "select 1"); err != nil {
		t.Errorf("the shared server went with it: %v", err)
	}
}

func TestTopicsAreOnesOwn(t *testing.T) {
	addrs := devtest.Fake(t, devstack.FakeOptions{}).Addrs()
	names := []string{devtest.Topic(t, addrs, 3), devtest.Topic(t, addrs, 3)}
	if names[0] == names[1] {
		t.Fatalf("two topics of one name: %s", names[0])
	}
	client := devtest.Client(t, addrs)
	topics, err := kadm.NewClient(client).ListTopics(t.Context(), names...)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if got := len(topics[name].Partitions); got != 3 {
			t.Errorf("%s: got %d partitions, want 3", name, got)
		}
		if !strings.HasPrefix(name, "testtopicsareonesown-") {
			t.Errorf("%s does not name its test", name)
		}
	}
}

func TestBrokersFromTheEnvironment(t *testing.T) {
	t.Setenv("PROJECTOR_TEST_BROKERS", "one:9092,two:9092")
	if got := devtest.Broker(t).Addrs(); !slices.Equal(got, []string{"one:9092", "two:9092"}) {
		t.Errorf("got %v", got)
	}
}

// failed records the message of Fatal.
type failed struct {
	testing.TB
	message string
}

func (f *failed) Helper() {}

func (f *failed) Fatalf(format string, args ...any) {
	f.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (f *failed) Skip(...any) { f.message = "skipped" }

func TestWhatCannotBeStartedFailsTheTest(t *testing.T) {
	tests := map[string]struct {
		env, value string
		use        func(testing.TB)
		want       string
	}{
		"kind of broker": {"PROJECTOR_TEST_KAFKA", "genuine", func(t testing.TB) { t.Helper(); devtest.Broker(t) }, "use fake or real"},
		"no PostgreSQL":  {"PG_BINDIR", t.TempDir(), func(t testing.TB) { t.Helper(); devtest.Postgres(t) }, "PG_BINDIR"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PROJECTOR_TEST_BROKERS", "")
			t.Setenv(test.env, test.value)
			recorder := &failed{TB: t}
			done := make(chan struct{})
			go func() {
				defer close(done)
				test.use(recorder)
			}()
			<-done
			if !strings.Contains(recorder.message, test.want) {
				t.Errorf("got %q, want a failure with %q", recorder.message, test.want)
			}
		})
	}
}

// TestTopicIsCreatedWhenTheBrokersAreBackInTime refuses a topic twice, as a Kafka does on a machine that
// is so busy that the controller misses the heartbeats of its brokers.
func TestTopicIsCreatedWhenTheBrokersAreBackInTime(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	refused := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.CreateTopics}, Err: kerr.InvalidReplicationFactor, Count: 2})
	topic := devtest.Topic(t, cluster.ListenAddrs(), 2)
	details, err := kadm.NewClient(devtest.Client(t, cluster.ListenAddrs())).ListTopics(t.Context(), topic)
	if err != nil || len(details[topic].Partitions) != 2 || refused.Hits() != 2 {
		t.Errorf("topic %v, error %v, refused %d times", details, err, refused.Hits())
	}
}
