// Package devtest starts the servers that tests need and stops them at the end. A package that uses
// it calls Main once:
//
//	func TestMain(m *testing.M) { devtest.Main(m, migrate) }
//
// Each test then requests what it needs:
//
//	url := devtest.Database(t)            // a migrated database for this test alone
//	addrs := devtest.Broker(t).Addrs()    // kfake, or a real Kafka
//	topic := devtest.Topic(t, addrs, 3)   // a topic for this test alone
//	pg := devtest.Postgres(t)             // a cluster that the test may break
//
// One PostgreSQL serves all tests of a process. It starts when the first test needs it. The schema
// is migrated once, in a template, and each database is a copy of the template. If a server cannot
// start, the test fails and the message names the remedy. No test is skipped.
//
// Environment:
//
//	PROJECTOR_TEST_DATABASE_URL  a running PostgreSQL to use instead; its role may create databases
//	PROJECTOR_TEST_BROKERS       running brokers to use instead, host:port,host:port
//	PROJECTOR_TEST_KAFKA         "real": Broker gives a real Kafka, one for the process; "fake" or empty: kfake
package devtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"time"

	"projector/internal/devstack"
)

const (
	startLimit = 4 * time.Minute // longer than the limit of a start in devstack
	stopLimit  = 3 * time.Minute
)

// Migrate migrates the schema of the database at a URL.
type Migrate func(ctx context.Context, databaseURL string) error

// process holds the servers that the tests of this process share. A test binary has one TestMain,
// so one variable is enough.
var process servers

// servers starts each shared server when a test first needs it.
type servers struct {
	mu       sync.Mutex
	open     bool // Main is running
	migrate  Migrate
	database *databaseServer
	kafka    *devstack.Kafka
	private  map[int]func(context.Context) error // close functions of the servers of single tests
	nextID   int
}

// Main runs the tests, stops every server and exits the process with the tests' status. It also
// stops the servers on SIGINT and SIGTERM. If migrate is nil, the databases are empty.
func Main(m *testing.M, migrate Migrate) {
	process.begin(migrate)
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-interrupted
		os.Exit(process.end(1))
	}()
	os.Exit(process.end(m.Run()))
}

func (s *servers) begin(migrate Migrate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open, s.migrate = true, migrate
}

// end stops all servers. It returns status, or at least 1 when a server could not be stopped.
func (s *servers) end(status int) int {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = false
	var err error
	if s.database != nil {
		err = s.database.close(ctx)
	}
	if s.kafka != nil {
		err = errors.Join(err, s.kafka.Close(ctx))
	}
	for _, stop := range s.private {
		err = errors.Join(err, stop(ctx))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "stop the test servers:", err)
		return max(status, 1)
	}
	return status
}

// closeWith registers how to stop the server of a single test. The server is stopped when the test
// ends, or earlier when a signal ends the process.
func (s *servers) closeWith(t testing.TB, stop func(context.Context) error) {
	t.Helper()
	s.mu.Lock()
	s.nextID++
	id := s.nextID
	if s.private == nil {
		s.private = map[int]func(context.Context) error{}
	}
	s.private[id] = stop
	s.mu.Unlock()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
		defer cancel()
		if err := stop(ctx); err != nil {
			t.Errorf("devtest: %v", err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.private, id)
	})
}

var errNoMain = errors.New("the package's TestMain must call devtest.Main, which stops the servers at the end")

// sharedDatabase returns the shared PostgreSQL and starts it if necessary.
func (s *servers) sharedDatabase(ctx context.Context) (*databaseServer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open {
		return nil, errNoMain
	}
	if s.database == nil {
		started, err := startDatabaseServer(ctx, s.migrate)
		if err != nil {
			return nil, err
		}
		s.database = started
	}
	return s.database, nil
}

// sharedKafka returns the shared real Kafka and starts it if necessary.
func (s *servers) sharedKafka(ctx context.Context) (*devstack.Kafka, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open {
		return nil, errNoMain
	}
	if s.kafka == nil {
		started, err := devstack.StartKafka(ctx, devstack.KafkaOptions{Log: os.Stderr})
		if err != nil {
			return nil, err
		}
		s.kafka = started
	}
	return s.kafka, nil
}
