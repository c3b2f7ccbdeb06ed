package devstack

import (
	"context"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

func startPostgres(t *testing.T, options PostgresOptions) *Postgres {
	t.Helper()
	p, err := StartPostgres(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}

func runSQL(t *testing.T, databaseURL, statement string) {
	t.Helper()
	if err := execute(t.Context(), databaseURL, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func queryText(t *testing.T, databaseURL, query string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var answer string
	if err := conn.QueryRow(t.Context(), query).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return answer
}

func TestPostgresRestartsOnItsPortWithItsData(t *testing.T) {
	p := startPostgres(t, PostgresOptions{})
	database, err := p.NewDatabase(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	runSQL(t, database, "create table kept (mode text)")
	for name, mode := range map[string]StopMode{"fast": Fast, "immediate": Immediate} {
		runSQL(t, database, "insert into kept values ('"+name+"')")
		before := p.PID()
		if err := p.Stop(t.Context(), mode); err != nil {
			t.Fatalf("%s stop: %v", name, err)
		}
		if pid := p.PID(); pid != 0 {
			t.Errorf("pid of a stopped server: got %d, want 0", pid)
		}
		if err := execute(t.Context(), database, "select 1"); err == nil {
			t.Errorf("%s: a stopped server answers", name)
		}
		if err := p.Start(t.Context()); err != nil {
			t.Fatalf("start after %s stop: %v", name, err)
		}
		if p.PID() == before || p.PID() == 0 {
			t.Errorf("pid after restart: got %d, want a new one (was %d)", p.PID(), before)
		}
		if got := queryText(t, database, "select mode from kept where mode = '"+name+"'"); got != name {
			t.Errorf("committed row after %s stop: got %q", name, got)
		}
	}
}

// TestPostgresCluster checks the operations that do not stop the cluster.
func TestPostgresCluster(t *testing.T) {
	p := startPostgres(t, PostgresOptions{Settings: map[string]string{"max_connections": "17"}})
	for name, test := range map[string]func(*testing.T, *Postgres){
		"is a durability test bed":          durabilityTestBed,
		"needs its password":                needsItsPassword,
		"copies a template":                 copiesTemplate,
		"drops a database with its session": dropsDatabaseInUse,
	} {
		t.Run(name, func(t *testing.T) { test(t, p) })
	}
}

func durabilityTestBed(t *testing.T, p *Postgres) {
	t.Helper()
	for setting, want := range map[string]string{
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "max_connections": "17",
		"listen_addresses": "127.0.0.1", "timezone": "UTC", "server_encoding": "UTF8",
	} {
		if got := queryText(t, p.URL(), "select current_setting('"+setting+"')"); got != want {
			t.Errorf("%s: got %q, want %q", setting, got, want)
		}
	}
}

func needsItsPassword(t *testing.T, p *Postgres) {
	t.Helper()
	u, err := url.Parse(p.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(superuser, "guess")
	if err := execute(t.Context(), u.String(), "select 1"); err == nil {
		t.Error("a wrong password was accepted")
	}
}

// All clusters begin as a copy of the same data.
func TestEachClusterHasItsOwnPassword(t *testing.T) {
	first, second := startPostgres(t, PostgresOptions{}), startPostgres(t, PostgresOptions{FastLogin: true})
	stranger := &Postgres{server: server{port: second.port}, password: first.password}
	if err := execute(t.Context(), stranger.URL(), "select 1"); err == nil {
		t.Error("the password of one cluster opens another")
	}
}

func copiesTemplate(t *testing.T, p *Postgres) {
	t.Helper()
	if err := CreateDatabase(t.Context(), p.URL(), "template", ""); err != nil {
		t.Fatal(err)
	}
	runSQL(t, p.DatabaseURL("template"), "create table marker as select 'from template' as text")
	first, err := p.NewDatabase(t.Context(), "template")
	if err != nil {
		t.Fatal(err)
	}
	second, err := p.NewDatabase(t.Context(), "template")
	if err != nil {
		t.Fatal(err)
	}
	runSQL(t, first, "update marker set text = 'changed'")
	if got := queryText(t, second, "select text from marker"); got != "from template" {
		t.Errorf("second copy: got %q", got)
	}
}

func dropsDatabaseInUse(t *testing.T, p *Postgres) {
	t.Helper()
	if err := CreateDatabase(t.Context(), p.URL(), "used", ""); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), p.DatabaseURL("used"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for range 2 { // the second drop finds no database, which is no error
		if err := DropDatabase(t.Context(), p.URL(), "used"); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Ping(t.Context()); err == nil {
		t.Error("the session survived its database")
	}
}

func TestPostgresCloseLeavesNoTemporaryFolder(t *testing.T) {
	p := startPostgres(t, PostgresOptions{})
	for range 2 { // a second close is no error
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(p.dir); !os.IsNotExist(err) {
		t.Errorf("folder after Close: %v", err)
	}
}

func TestPostgresSaysWhyItDoesNotStart(t *testing.T) {
	_, err := StartPostgres(t.Context(), PostgresOptions{Settings: map[string]string{"max_connections": "many"}})
	if err == nil || !strings.Contains(err.Error(), "max_connections") {
		t.Errorf("error does not carry the server's words: %v", err)
	}
}

func TestPostgresStopKillsWhatDoesNotStopInTime(t *testing.T) {
	p := startPostgres(t, PostgresOptions{})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Stop(over, Fast); err == nil {
		t.Error("no error although time was up")
	}
	if pid := p.PID(); pid != 0 {
		t.Errorf("pid: got %d, want 0", pid)
	}
	if err := p.Start(t.Context()); err != nil {
		t.Errorf("start after a kill: %v", err)
	}
}
