package devtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/devstack"
)

// databaseServer is a PostgreSQL server with a migrated template database.
type databaseServer struct {
	url      string             // URL of the database for administration
	own      *devstack.Postgres // nil when an environment variable names the server
	template string             // name of the template database
	// admin has sessions for the creation and the removal of databases. A session of its own for
	// each statement would cost as much as the statement.
	admin *pgxpool.Pool
	// strategy is the end of the statement that copies the template.
	strategy string
}

// byFiles makes PostgreSQL 15 and newer copy the files of the template, as older versions always do.
// By default they write each page into the write-ahead log. With four tests at a time, a copy and its
// removal then take 27 ms more processor time.
const byFiles = " STRATEGY file_copy"

// startDatabaseServer starts a server, or uses the one that an environment variable names, and
// migrates a template database on it. The data is in memory if possible. A database consists of
// about a thousand small files, and creating them is most of the cost of a test.
func startDatabaseServer(ctx context.Context, migrate Migrate) (*databaseServer, error) {
	s := &databaseServer{url: os.Getenv("PROJECTOR_TEST_DATABASE_URL"), template: uniqueName("projector_template")}
	if s.url == "" {
		started, err := devstack.StartPostgres(ctx, devstack.PostgresOptions{TempRoot: MemoryFolder(), FastLogin: true})
		if err != nil {
			return nil, err
		}
		s.own, s.url = started, started.URL()
	}
	err := s.makeTemplate(ctx, migrate)
	if err == nil {
		s.admin, err = pgxpool.New(ctx, s.url)
	}
	if err == nil && s.own != nil { // on a disk, the two checkpoints of a copy would take longer
		err = s.chooseStrategy(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	return s, nil
}

func (s *databaseServer) chooseStrategy(ctx context.Context) error {
	var chooses bool
	err := s.admin.QueryRow(ctx, "SELECT current_setting('server_version_num')::int >= 150000").Scan(&chooses)
	if chooses {
		s.strategy = byFiles
	}
	return err
}

func (s *databaseServer) makeTemplate(ctx context.Context, migrate Migrate) error {
	templateURL, err := devstack.WithDatabase(s.url, s.template)
	if err != nil {
		return fmt.Errorf("PROJECTOR_TEST_DATABASE_URL: %w", err)
	}
	if err := devstack.CreateDatabase(ctx, s.url, s.template, ""); err != nil {
		return err
	}
	if migrate == nil {
		return nil
	}
	if err := migrate(ctx, templateURL); err != nil {
		return fmt.Errorf("migrate the template database: %w", err)
	}
	return nil
}

// close stops the server if startDatabaseServer started it. On a server that an environment
// variable names, it drops the template.
func (s *databaseServer) close(ctx context.Context) error {
	if s.admin != nil {
		go s.admin.Close() // waits for the sessions of tests that a signal has interrupted
	}
	if s.own != nil {
		return s.own.Close(ctx)
	}
	return devstack.DropDatabase(ctx, s.url, s.template)
}

// Database returns the URL of a fresh, migrated database. The database is dropped when the test
// ends, even if sessions are still connected.
func Database(t testing.TB) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	server, err := process.sharedDatabase(ctx)
	if err != nil {
		t.Fatalf("devtest: no database: %v", err)
	}
	name := uniqueName("projector_test")
	if _, err := server.admin.Exec(ctx, devstack.CreateStatement(name, server.template)+server.strategy); err != nil {
		t.Fatalf("devtest: no database: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
		defer cancel()
		if _, err := server.admin.Exec(ctx, devstack.DropStatement(name)); err != nil {
			t.Errorf("devtest: drop database %s: %v", name, err)
		}
	})
	databaseURL, err := devstack.WithDatabase(server.url, name)
	if err != nil {
		t.Fatalf("devtest: %v", err)
	}
	return databaseURL
}

// Postgres returns a cluster for this test alone. The test may stop, crash or freeze it. It has no
// migrated database: NewDatabase creates a database, and Schema migrates it. Settings are server
// parameters in the order name, value, name, value.
func Postgres(t testing.TB, settings ...string) *devstack.Postgres {
	t.Helper()
	return PostgresWith(t, devstack.PostgresOptions{Settings: pairs(t, settings)})
}

// PostgresWith is like Postgres and takes all options.
func PostgresWith(t testing.TB, options devstack.PostgresOptions) *devstack.Postgres {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	options.FastLogin = true
	cluster, err := devstack.StartPostgres(ctx, options)
	if err != nil {
		t.Fatalf("devtest: %v", err)
	}
	process.closeWith(t, cluster.Close)
	return cluster
}

// Schema migrates the database at a URL with the function that Main received.
func Schema(t testing.TB, databaseURL string) {
	t.Helper()
	process.mu.Lock()
	migrate := process.migrate
	process.mu.Unlock()
	if migrate == nil {
		t.Fatal("devtest: Schema needs a migration: give one to devtest.Main")
	}
	if err := migrate(t.Context(), databaseURL); err != nil {
		t.Fatalf("devtest: migrate: %v", err)
	}
}

func pairs(t testing.TB, list []string) map[string]string {
	t.Helper()
	if len(list)%2 != 0 {
		t.Fatal("devtest: settings are names and values in turn")
	}
	settings := make(map[string]string, len(list)/2)
	for i := 0; i < len(list); i += 2 {
		settings[list[i]] = list[i+1]
	}
	return settings
}

// uniqueName returns prefix and a random suffix of 17 characters.
func uniqueName(prefix string) string {
	return prefix + "_" + strings.ToLower(rand.Text()[:16])
}
