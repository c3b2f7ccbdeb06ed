package devtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"projector/internal/devstack"
)

// databaseServer is a PostgreSQL and the migrated template on it.
type databaseServer struct {
	url      string             // of a database to administer from
	own      *devstack.Postgres // nil when the server was given by the environment
	template string             // its name
}

// startDatabaseServer starts a server, or takes the given one, and migrates a
// template on it. Its data is in memory where there is some: a database is a
// thousand small files, and making them is most of what such a test costs.
func startDatabaseServer(ctx context.Context, migrate Migrate) (*databaseServer, error) {
	s := &databaseServer{url: os.Getenv("PROJECTOR_TEST_DATABASE_URL"), template: uniqueName("projector_template")}
	if s.url == "" {
		started, err := devstack.StartPostgres(ctx, devstack.PostgresOptions{TempRoot: MemoryFolder()})
		if err != nil {
			return nil, err
		}
		s.own, s.url = started, started.URL()
	}
	if err := s.makeTemplate(ctx, migrate); err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	return s, nil
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

// close leaves nothing behind: of a given server it removes the template.
func (s *databaseServer) close(ctx context.Context) error {
	if s.own != nil {
		return s.own.Close(ctx)
	}
	return devstack.DropDatabase(ctx, s.url, s.template)
}

// Database returns the URL of a fresh, migrated database. It is dropped when
// the test ends, even if sessions are still connected.
func Database(t testing.TB) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	server, err := process.sharedDatabase(ctx)
	if err != nil {
		t.Fatalf("devtest: no database: %v", err)
	}
	name := uniqueName("projector_test")
	if err := devstack.CreateDatabase(ctx, server.url, name, server.template); err != nil {
		t.Fatalf("devtest: no database: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
		defer cancel()
		if err := devstack.DropDatabase(ctx, server.url, name); err != nil {
			t.Errorf("devtest: %v", err)
		}
	})
	databaseURL, err := devstack.WithDatabase(server.url, name)
	if err != nil {
		t.Fatalf("devtest: %v", err)
	}
	return databaseURL
}

// Postgres returns a cluster for this test alone, to stop, crash or freeze. Its
// databases are empty: NewDatabase makes one, Schema migrates it. Settings are
// server parameters, name and value in turn.
func Postgres(t testing.TB, settings ...string) *devstack.Postgres {
	t.Helper()
	return PostgresWith(t, devstack.PostgresOptions{Settings: pairs(t, settings)})
}

// PostgresWith is Postgres with other wishes.
func PostgresWith(t testing.TB, options devstack.PostgresOptions) *devstack.Postgres {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	cluster, err := devstack.StartPostgres(ctx, options)
	if err != nil {
		t.Fatalf("devtest: %v", err)
	}
	process.closeWith(t, cluster.Close)
	return cluster
}

// Schema brings the database at a URL up to date, by the migration Main was
// given.
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

// uniqueName is prefix and something nobody else has, at most 60 characters.
func uniqueName(prefix string) string {
	return prefix + "_" + strings.ToLower(rand.Text()[:16])
}
